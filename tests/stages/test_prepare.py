from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stages.prepare import command
from tests.prepare.files import pair, write_jsonl


def run(folder: Path, *arguments: str) -> Result:
    (folder / "params.yaml").write_text("")
    paths = ["--params", str(folder / "params.yaml"), "--source", str(folder / "source")]
    paths += ["--examples", str(folder / "examples.parquet")]
    return CliRunner().invoke(command, [*paths, *arguments])


def test_it_says_what_was_written(tmp_path: Path) -> None:
    data = [pair(0), pair(1, summary=["a", "b", "c"])]
    path = write_jsonl(tmp_path / "d.jsonl", data)
    result = run(tmp_path, "-S", f"prepare.dataset={path}")
    assert result.exit_code == 0
    assert result.output == (
        f"{tmp_path / 'examples.parquet'}: 2 rows of {path}, 1 to 3 reference(s) per row; "
        "columns row, id, references, document\n"
    )
    assert (tmp_path / "source").is_symlink()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-S", "prepare.dataset=./no.csv"], "prepare.dataset: there is no file or folder no.csv"),
        (["-S", "prepare.limits=3"], "unknown key 'prepare.limits' (did you mean limit?)"),
        (["-S", "prepare.limit=0"], "prepare.limit: expected int >= 1"),
        (["-S", "prepare.keep=[row]"], "prepare.keep: 'row' is the name of a column"),
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
    assert "prepare needs the install extra [predict]" in result.output
