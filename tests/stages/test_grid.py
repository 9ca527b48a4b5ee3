from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stages.main import main
from tests.compare.systems import make_rows, write_scores

PATTERN = "scores/{dataset}/{model}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grid")
    for dataset, rows in (("news", 30), ("talk", 20)):
        for model, noise in (("a", 0.5), ("b", 0.1)):
            (folder / "scores" / dataset).mkdir(parents=True, exist_ok=True)
            write_scores(
                folder / "scores" / dataset / model, make_rows(rows, noise), metrics=("bleu",)
            )
    (folder / "grid.yaml").write_text("model: [b, a]\ndataset: [talk, news]\n")
    return folder


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["grid", "--replicates", "20", *arguments])


def test_the_table_is_printed_and_written_in_the_format_of_each_name(tmp_path: Path) -> None:
    outs = [tmp_path / name for name in ("grid.md", "grid.json", "grid.csv", "deep/grid.txt")]
    result = _run(
        PATTERN, "--axes", "grid.yaml", "--across", "dataset", "--baseline", "a",
        *(word for out in outs for word in ("--out", str(out))),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["model", "talk", "bleu", "news", "bleu"]
    assert [line.split()[0] for line in lines[1:3]] == ["b", "a"]
    assert lines[1].count("*▲") == 2
    assert outs[3].read_text() == result.stdout
    assert outs[0].read_text().startswith("| model | talk bleu | news bleu |")
    assert json.loads(outs[1].read_text())["baseline"] == "a"
    assert outs[2].read_text().startswith("dataset,model,score,value")


def test_without_axes_it_is_what_is_there() -> None:
    result = _run(PATTERN, "--across", "dataset", "--format", "csv", "--metric", "bleu")
    assert [line.split(",")[:2] for line in result.stdout.splitlines()[1:]] == [
        ["news", "a"], ["talk", "a"], ["news", "b"], ["talk", "b"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["scores"], 1, "scores names no axis: write it in braces"),
        ([PATTERN, "--across", "data"], 1, "--across: there is no axis 'data'"),
        ([PATTERN], 1, "are only in"),
        (["{model}/x"], 1, "there are no scores in {model}/x"),
        ([PATTERN, "--axes", "nowhere.yaml"], 1, "--axes nowhere.yaml: cannot be read"),
        ([], 2, "Missing argument 'PATTERN'"),
        ([PATTERN, "--format", "yaml"], 2, "--format"),
    ],
)
def test_errors(arguments: list[str], code: int, message: str) -> None:
    result = _run(*arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert code != 1 or len(result.stderr.splitlines()) == 1


def test_missing_cells() -> None:
    Path("more.yaml").write_text("model: [a, b, c]\ndataset: [news, talk]\n")
    options = [PATTERN, "--axes", "more.yaml", "--across", "dataset"]
    refused = _run(*options)
    assert refused.exit_code == 1
    assert "2 of 6 cells have no scores: scores/news/c, scores/talk/c; score" in refused.stderr
    shown = _run(*options, "--allow-missing")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[3].split() == ["c", "–", "–"]
    assert "no scores (–) in scores/news/c, scores/talk/c" in shown.stdout


PROGRAM = """
import sys
from stages.grid import command
command(["scores/news/{model}", "--replicates", "5"], standalone_mode=False)
print(sorted({"torch", "transformers", "datasets", "evaluate", "pandas"} & sys.modules.keys()))
"""


def test_nothing_heavy_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
