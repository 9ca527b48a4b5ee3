from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stages.main import main
from tests.compare.systems import make_rows, write_scores


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("systems")
    for name, noise in (("a", 0.4), ("b", 0.2), ("c", 0.1)):
        write_scores(folder / name, make_rows(40, noise))
    write_scores(folder / "lower", make_rows(40, 0.2), metrics=({"bleu": {"lowercase": True}},))
    return folder


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["compare", "--replicates", "20", *arguments])


def test_a_table_for_each_system() -> None:
    result = _run("a", "b", "c")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "baseline a; 40 rows compared, 20 replicates, seed 0"
    assert [line for line in lines if "against" in line] == ["b against a", "c against a"]
    assert [line.split()[0] for line in lines[5:10]] == [
        *("rouge1", "rouge2", "rougeL", "rougeLsum", "bleu")
    ]


def test_formats_and_files(tmp_path: Path) -> None:
    shown = _run("a", "b", "--format", "json", "--metric", "bleu", "--top", "1", "--seed", "7")
    found = json.loads(shown.stdout)
    assert (found["replicates"], found["seed"], found["confidence"]) == (20, 7, 0.95)
    (system,) = found["systems"]
    assert list(system["differences"]) == ["bleu"]
    assert len(system["differences"]["bleu"]["changed"]) == 1
    out = tmp_path / "deep/compare.md"
    written = _run("a", "b", "--format", "markdown", "--out", str(out), "--confidence", "0.9")
    assert written.stdout == f"wrote {out}\n"
    assert "| 90% interval |" in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["a", "lower"], 1, "lower has bleu; score both with the same metrics, or compare by"),
        (["a", "lower", "--metric", "bleu"], 1, "case is mixed in a and lc in lower"),
        (["a", "nowhere"], 1, "nowhere/summary.json: no such file"),
        (["a", "b", "--metric", "blue"], 1, "there is no 'blue' (did you mean bleu?)"),
        (["a"], 2, "Missing argument 'SYSTEMS...'"),
        (["a", "b", "--confidence", "1"], 2, "--confidence"),
        (["a", "b", "--format", "yaml"], 2, "--format"),
    ],
)
def test_errors(arguments: list[str], code: int, message: str) -> None:
    result = _run(*arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert code != 1 or len(result.stderr.splitlines()) == 1


def test_common() -> None:
    write_scores(Path("more"), make_rows(40, 0.2) + [("new", "a", ["a"])])
    refused = _run("a", "more")
    assert refused.exit_code == 1
    assert "1 of 41 are only in more ('new'); compare those that both have" in refused.stderr
    assert "40 rows compared" in _run("a", "more", "--common").stdout


PROGRAM = """
import sys
from stages.compare import command
command(["a", "b", "--replicates", "5"], standalone_mode=False)
print(sorted({"torch", "transformers", "datasets", "evaluate", "pandas"} & sys.modules.keys()))
"""


def test_nothing_heavy_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("baseline a;")
    assert done.stdout.splitlines()[-1] == "[]"
