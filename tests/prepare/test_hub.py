"""Data sets of a hub on the loopback interface, in a new process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.fetch.hub_server import COMMIT, Hub, run_stage, serve
from tests.prepare.files import pair


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    files = {
        f"{split}.jsonl": (json.dumps(pair(number)) + "\n").encode()
        for number, split in enumerate(("train", "test"))
    }
    with serve({("datasets", "owner/data"): files}) as hub:
        yield hub


def run(hub: Hub, cwd: Path, *settings: str, offline: bool = False) -> tuple[int, str]:
    arguments = [part for setting in settings for part in ("-S", f"prepare.{setting}")]
    done = run_stage("prepare", *arguments, cwd=cwd, endpoint=hub.endpoint, offline=offline)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def test_a_split_of_the_hub(hub: Hub, tmp_path: Path) -> None:
    code, said = run(hub, tmp_path, "dataset=owner/data")
    assert code == 0
    assert said == (
        "data/examples.parquet: 1 rows of the hub's owner/data, 1 reference(s) per row; "
        "columns row, id, references, document\n"
    )
    assert pq.read_table(tmp_path / "data/examples.parquet")["id"].to_pylist() == ["id-1"]
    assert json.loads((tmp_path / "data/source").read_text()) == {
        "dataset": "owner/data",
        "name": None,
        "split": "test",
        "commit": COMMIT,
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["dataset=owner/data", "split=dev"], 'Unknown split "dev". Should be one of [\'tra'),
        (["dataset=owner/data", "split=null"], "has the splits train, test; name one in prepare"),
        (["dataset=owner/data", "name=x"], "(x) cannot be loaded: BuilderConfig 'x' not found"),
        (["dataset=owner/none"], "'owner/none' doesn't exist on the Hub or cannot be accessed"),
        (["dataset=owner/gated"], "'owner/gated' is a gated dataset on the Hub"),
    ],
)
def test_errors_are_one_line(settings: list[str], message: str, hub: Hub, tmp_path: Path) -> None:
    code, said = run(hub, tmp_path, *settings)
    assert code == 1
    last = said.splitlines()[-1]
    assert last.startswith("Error: the hub's owner/")
    assert message in last
    assert not (tmp_path / "data" / "examples.parquet").exists()


NOT_THERE = "Error: the hub's owner/data is not in the local cache and the hub cannot be reached ("


def test_offline(hub: Hub, tmp_path: Path) -> None:
    code, said = run(hub, tmp_path, "dataset=owner/data", offline=True)
    assert code == 1
    assert said.startswith(f"{NOT_THERE}HF_HUB_OFFLINE is set); go online, or name a local file")
    assert len(said.splitlines()) == 1


def test_nobody_answers(hub: Hub, tmp_path: Path) -> None:
    """One line: the library alone says 11, in 25 seconds."""
    arguments = ("-S", "prepare.dataset=owner/data")
    done = run_stage("prepare", *arguments, cwd=tmp_path, endpoint="http://127.0.0.1:9")
    assert done.returncode == 1
    assert done.stderr.startswith(NOT_THERE)
    assert len(done.stderr.splitlines()) == 1

    code, _ = run(hub, tmp_path, "dataset=owner/data")
    assert code == 0
    done = run_stage("prepare", *arguments, cwd=tmp_path, endpoint="http://127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert done.stdout.splitlines()[0].endswith(
        ": the hub's owner/data is taken from the local cache"
    )
    assert pq.read_table(tmp_path / "data/examples.parquet")["id"].to_pylist() == ["id-1"]


def test_a_split_of_the_hub_as_a_stream(hub: Hub, tmp_path: Path) -> None:
    code, said = run(hub, tmp_path, "dataset=owner/data", "streaming=true", "limit=null")
    assert code == 0, said
    assert said.startswith("data/examples.parquet: 1 rows of the hub's owner/data, ")
    assert pq.read_table(tmp_path / "data/examples.parquet")["id"].to_pylist() == ["id-1"]
    assert json.loads((tmp_path / "data/source").read_text())["commit"] == COMMIT
    assert not list((tmp_path / "hf").rglob("*.arrow"))  # nothing was downloaded to stay


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["dataset=owner/data", "split=dev"], "cannot be loaded: Bad split: dev. Available"),
        (["dataset=owner/data", "split=null"], "has the splits train, test; name one in prepare"),
    ],
)
def test_errors_of_a_stream_are_one_line(
    settings: list[str], message: str, hub: Hub, tmp_path: Path
) -> None:
    code, said = run(hub, tmp_path, *settings, "streaming=true")
    assert code == 1
    last = said.splitlines()[-1]
    assert last.startswith("Error: the hub's owner/")
    assert message in last


def test_a_stream_without_a_network(hub: Hub, tmp_path: Path) -> None:
    code, said = run(hub, tmp_path, "dataset=owner/data")
    assert code == 0  # what is in the cache is no stream
    settings = ("-S", "prepare.dataset=owner/data", "-S", "prepare.streaming=true")
    done = run_stage("prepare", *settings, cwd=tmp_path, endpoint="http://127.0.0.1:9")
    code, said = run(hub, tmp_path, "dataset=owner/data", "streaming=true", offline=True)
    assert (done.returncode, code) == (1, 1)
    cannot = "Error: the hub's owner/data cannot be streamed: the hub cannot be reached ("
    for message in (done.stderr, said):
        assert message.startswith(cannot)
        assert len(message.splitlines()) == 1
    assert f"{cannot}HF_HUB_OFFLINE is set); go online, set prepare.streaming to false" in said
