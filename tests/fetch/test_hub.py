"""Against a hub on the loopback interface, in a new process: see ``hub_server``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.errors import ModelError
from pipeline.fetch.config import FetchConfig
from pipeline.fetch.fetch import fetch
from pipeline.fetch.files import count_parameters
from pipeline.store.card import RunCard
from tests.examples import write_examples
from tests.fetch.hub_server import COMMIT, Hub, run_stage, serve
from tests.models import save_lora


@pytest.fixture(scope="module")
def hub(gpt2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    model = {path.name: path.read_bytes() for path in gpt2.iterdir()}
    texts = {name: content for name, content in model.items() if not name.endswith(".safetensors")}
    weights = {"pytorch_model.bin": b"torch", "tf_model.h5": b"tensorflow", "optimizer.pt": b"x"}
    folders = {"onnx/config.json": b"{}", "onnx/model.onnx": b"onnx"}
    lora = save_lora(tmp_path_factory.mktemp("lora"), gpt2)
    adapter = {path.name: path.read_bytes() for path in lora.iterdir()}
    repositories = {
        ("models", "owner/lora"): {**adapter, "optimizer.pt": b"x"},
        ("models", "owner/both"): {**model, **weights, **folders, "README.md": b"# Model"},
        ("models", "owner/bin"): {**texts, **weights},
        ("models", "owner/texts"): texts,
    }
    with serve(repositories) as hub:
        yield hub


def run(hub: Hub, cwd: Path, model: str, *more: str, offline: bool = False) -> tuple[int, str]:
    arguments = ["-S", f"fetch.model={model}", *more]
    done = run_stage("fetch", *arguments, cwd=cwd, endpoint=hub.endpoint, offline=offline)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def names(cwd: Path) -> set[str]:
    return {path.name for path in (cwd / "data" / "model").iterdir()}


def test_what_is_needed_is_downloaded_and_the_commit_recorded(
    hub: Hub, gpt2: Path, tmp_path: Path
) -> None:
    hub.gets.clear()
    code, said = run(hub, tmp_path, "owner/both", "-S", "fetch.revision=v1")
    assert code == 0
    assert f"data/model: owner/both at {COMMIT[:12]}, {count_parameters(gpt2)} parameters" in said
    expected = {path.name for path in gpt2.iterdir()}
    assert set(hub.gets) == expected
    assert names(tmp_path) == expected | {"source.json"}
    for name in expected:
        assert (tmp_path / "data/model" / name).read_bytes() == (gpt2 / name).read_bytes()
        assert not (tmp_path / "data/model" / name).is_symlink()
    source = json.loads((tmp_path / "data/model/source.json").read_text())
    assert source == {"model": "owner/both", "revision": "v1", "commit": COMMIT}

    hub.gets.clear()
    code, _ = run(hub, tmp_path, "owner/both")
    assert code == 0
    assert hub.gets == []  # the second time nothing is downloaded

    code, _ = run(hub, tmp_path, "owner/both", offline=True)
    assert code == 0  # what is in the cache needs no network


def test_bin_only_where_there_are_no_safetensors(hub: Hub, tmp_path: Path) -> None:
    code, said = run(hub, tmp_path, "owner/bin")
    assert code == 0
    assert "parameters" not in said  # they stand in the header of safetensors alone
    assert (tmp_path / "data/model/pytorch_model.bin").read_bytes() == b"torch"
    assert not names(tmp_path) & {"tf_model.h5", "optimizer.pt"}


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        ("owner/none", (), "no model owner/none on the hub that you may read"),
        ("owner/gated", (), "owner/gated is gated: accept its terms .*`hf auth login`"),
        ("owner/both", ("-S", "fetch.revision=nope"), "has no branch, tag or commit 'nope'"),
        ("owner/broken", (), "the hub cannot be reached (.*500 Internal Server Error.*)"),
        ("owner/texts", (), "the hub's owner/texts holds no weights"),
    ],
)
def test_errors_are_one_line(
    model: str, more: tuple[str, ...], message: str, hub: Hub, tmp_path: Path
) -> None:
    import re

    code, said = run(hub, tmp_path, model, *more)
    assert code == 1
    assert re.search(f"^Error: .*{message}", said, flags=re.MULTILINE)
    assert not (tmp_path / "data" / "model").exists()


def test_offline(hub: Hub, tmp_path: Path) -> None:
    code, said = run(hub, tmp_path, "owner/both", offline=True)
    assert code == 1
    assert "is not in the local cache and the hub cannot be reached (HF_HUB_OFFLINE is set)" in said


def test_nobody_answers(hub: Hub, tmp_path: Path) -> None:
    arguments = ["-S", "fetch.model=owner/both"]
    done = run_stage("fetch", *arguments, cwd=tmp_path, endpoint="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "the hub cannot be reached (" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_name_that_no_hub_can_have(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'my model!' is neither a folder here nor a hub id"):
        fetch(FetchConfig(model="my model!"), tmp_path / "model")


def test_predict_takes_a_hub_id(hub: Hub, tmp_path: Path) -> None:
    write_examples(tmp_path / "data/examples.parquet", ["a fox"])
    done = run_stage(
        "predict",
        *("--model", "owner/both", "-S", "predict.generation={max_new_tokens: 2}"),
        cwd=tmp_path,
        endpoint=hub.endpoint,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data/predictions/SHA256SUMS").exists()


def test_predict_takes_the_hub_id_of_an_adapter(hub: Hub, gpt2: Path, tmp_path: Path) -> None:
    write_examples(tmp_path / "data/examples.parquet", ["a fox"])
    hub.gets.clear()
    done = run_stage(
        "predict",
        *("--model", str(gpt2), "-S", "predict.generation={max_new_tokens: 2}"),
        *("-S", "predict.adapter=owner/lora"),
        cwd=tmp_path,
        endpoint=hub.endpoint,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(Path(path).name for path in hub.gets) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    card = RunCard.read(tmp_path / "data/predictions")
    assert len(card.inputs["predict"]["adapter"]) == 64  # its content, not its name


def test_predict_without_fetch_names_fetch_and_asks_no_hub(hub: Hub, tmp_path: Path) -> None:
    write_examples(tmp_path / "data/examples.parquet", ["a fox"])
    hub.gets.clear()
    done = run_stage("predict", cwd=tmp_path, endpoint=hub.endpoint)
    assert done.returncode == 1
    assert "data/model: no such folder; run `twophase fetch`" in done.stderr
    assert not hub.gets
