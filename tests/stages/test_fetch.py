from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipeline.fetch.files import count_parameters
from stages.fetch import command, in_millions


def run(folder: Path, *arguments: str, params: str = "") -> Result:
    (folder / "params.yaml").write_text(params)
    paths = ["--params", str(folder / "params.yaml"), "--model", str(folder / "model")]
    return CliRunner().invoke(command, [*paths, *arguments])


def test_it_says_what_is_there_now(gpt2: Path, tmp_path: Path) -> None:
    result = run(tmp_path, params=f"fetch: {{model: {gpt2}}}\n")
    assert result.exit_code == 0
    parameters = count_parameters(gpt2)  # of a tiny model: 0.0 M would say nothing
    assert result.output.startswith(f"{tmp_path / 'model'}: {gpt2}, {parameters} parameters, 0.")
    assert result.output.count("\n") == 1
    assert (tmp_path / "model" / "config.json").exists()


def test_sizes_are_in_millions_where_there_are_some() -> None:
    assert in_millions(134_515_008, "M parameters", "parameters") == "134.5 M parameters"
    assert in_millions(100_000, "MB", "bytes") == "0.1 MB"
    assert in_millions(99_999, "MB", "bytes") == "99999 bytes"


def test_an_override(gpt2: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "lora"
    adapter.mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (adapter / name).write_text(name)
    options = ["-S", f"fetch.model={gpt2}", "-S", f"predict.adapter={adapter}"]
    assert run(tmp_path, *options).exit_code == 0
    assert (tmp_path / "model/adapter/adapter_config.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-S", "fetch.model=./nowhere"], "Error: fetch.model: there is no folder nowhere"),
        (["-S", "fetch.modle=x"], "unknown key 'fetch.modle' (did you mean model?)"),
        (["-S", "fetch.model=3"], "fetch.model: expected str or null, got int"),
    ],
)
def test_expected_errors_exit_with_1(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = run(tmp_path, *arguments)
    assert result.exit_code == 1
    assert message in result.output
    assert isinstance(result.exception, SystemExit)


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "fetch needs the install extra [predict]" in result.output
    assert "dvc repro --pull --allow-missing score" in result.output
