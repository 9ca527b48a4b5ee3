from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pipeline.score.metrics.bleu import Bleu
from stages.main import main
from tests.score.sets import write_set


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with predictions at the place where the defaults look."""
    monkeypatch.chdir(tmp_path)
    write_set(Path("data/predictions"), finish_reasons=["length", "eos", "eos", "eos", "eos"])
    Path("params.yaml").write_text("score:\n  metrics: [rouge, bleu]\n  replicates: 20\n")
    return tmp_path


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["score", *arguments])


def test_defaults_and_table(folder: Path) -> None:
    result = _run()
    assert result.exit_code == 0, result.output
    metrics = json.loads(Path("metrics.json").read_bytes())
    heading, *lines = result.stdout.splitlines()
    assert heading.split() == ["value", "95%", "interval"]
    assert [line.split()[0] for line in lines[:5]] == [
        "rouge1",
        "rouge2",
        "rougeL",
        "rougeLsum",
        "bleu",
    ]
    assert f"{metrics['rouge1']:.4f}  [" in lines[0]
    assert f"{metrics['bleu']:.2f}  [" in lines[4]
    assert lines[5].split() == ["rows", "5"]
    assert lines[6].split()[-1] == "20.0%"
    assert (folder / "data/scores/summary.json").exists()
    assert (folder / "data/plots/bleu.csv").exists()


def test_parameters_can_be_replaced(folder: Path) -> None:
    result = _run("-S", "score.metrics=[{bleu: {lowercase: true}}]", "-S", "score.confidence=0")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1].split()[0] == "bleu"
    assert "[" not in result.stdout
    summary = json.loads(Path("data/scores/summary.json").read_bytes())
    assert "case:lc" in summary["metrics"]["bleu"]["signature"]


def test_paths_can_be_chosen(folder: Path) -> None:
    Path("data/predictions").rename("elsewhere")
    result = _run(
        *("--predictions", "elsewhere", "--scores", "s", "--metrics", "m/m.json", "--plots", "p")
    )
    assert result.exit_code == 0, result.output
    assert {path.name for path in folder.iterdir()} >= {"s", "m", "p"}


def test_missing_chunks_and_what_to_do(folder: Path) -> None:
    Path("data/predictions/chunk-00001.parquet").unlink()
    result = _run()
    assert result.exit_code == 1
    assert "chunks are missing (chunk-00001.parquet); make them with" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    result = _run("--allow-partial")
    assert result.exit_code == 0, result.output
    assert "3 of 5" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-S", "score.metrics=[blue]"], "unknown metric 'blue' (did you mean bleu?)"),
        (["-S", "score.replicats=3"], "unknown key 'score.replicats' (did you mean replicates?)"),
        (["--predictions", "nowhere"], "nowhere is not a prediction set"),
        (["--params", "no.yaml"], "no.yaml: no such params file"),
    ],
)
def test_expected_errors_are_one_line(folder: Path, arguments: list[str], message: str) -> None:
    result = _run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert not Path("metrics.json").exists()


def test_as_a_module(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stages.score"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("rouge1 ")


def test_what_is_printed_by_a_second_run(folder: Path) -> None:
    assert "change" not in _run().stdout
    heading, first, *_ = _run("-S", "score.metrics=[bleu]").stdout.splitlines()
    assert heading.split()[-1] == "change"
    assert first.split()[-1] == "="
    lines = _run("-S", "score.metrics=[{bleu: {tokenize: char}}]").stdout.splitlines()
    assert lines[1].split()[-1][0] in "+-"
    Path("metrics.json").write_text("garbage")
    result = _run()
    assert "change" not in result.stdout
    assert "metrics.json holds no scores to compare with" in result.stderr


@pytest.mark.parametrize("format", ["json", "csv", "markdown"])
def test_nothing_but_the_format_on_stdout(folder: Path, format: str) -> None:
    result = _run("--format", format)
    assert result.exit_code == 0, result.output
    if format == "json":
        value = json.loads(result.stdout)["scores"]["bleu"]["value"]
    elif format == "csv":
        lines = [line.split(",") for line in result.stdout.splitlines()]
        value = float(next(line[3] for line in lines if line[2] == "bleu"))
    else:
        assert result.stdout.startswith("|  | value | 95% interval |\n|---|---|---|\n| rouge1 |")
        return
    assert value == json.loads(Path("metrics.json").read_bytes())["bleu"]


def test_what_a_metric_prints_is_not_among_the_results(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics = Bleu.statistics

    def printing(*arguments: Any) -> Any:
        print("so far so good")
        return statistics(*arguments)

    monkeypatch.setattr(Bleu, "statistics", printing)
    result = _run("--format", "json", "--no-cache")
    assert json.loads(result.stdout)["rows"] == 5
    assert "so far so good" in result.stderr


def test_groups(folder: Path) -> None:
    Path("data/predictions").rename("other")
    write_set(Path("data/predictions"), keep={"topic": ["a", "b", None, "b", "a"]})
    result = _run("-S", "score.by=[topic]", "-S", "score.confidence=0")
    assert result.exit_code == 0, result.output
    table = [line.split() for line in result.stdout.splitlines()[-4:]]
    assert table[0][:3] == ["topic", "rows", "rouge1"]
    assert [line[:2] for line in table[1:]] == [["a", "2"], ["b", "2"], ["null", "1"]]
    refused = _run("-S", "score.by=[subject]")
    assert refused.exit_code == 1
    assert "prepare.keep" in refused.stderr


def test_the_cache_is_where_it_is_said_and_can_be_left_out(folder: Path) -> None:
    assert _run("--no-cache").exit_code == 0
    assert not Path("data/.cache").exists()
    assert _run("--cache", "elsewhere").exit_code == 0
    assert not Path("data/.cache").exists()
    assert len(list(Path("elsewhere").glob("*/*.parquet"))) == 12
    assert _run().exit_code == 0
    assert len(list(Path("data/.cache/statistics").glob("*/*.parquet"))) == 12


def test_the_bar_counts_rows(folder: Path) -> None:
    program = (
        "import sys, tqdm; from stages.main import main\n"
        "kept = tqdm.tqdm.__init__\n"
        "def shown(self, *a, **k): kept(self, *a, **{**k, 'disable': False})\n"
        "tqdm.tqdm.__init__ = shown\n"
        "sys.argv = ['twophase', 'score', '--format', 'json']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "5/5" in done.stderr
    assert "row/s" in done.stderr
    json.loads(done.stdout)


def test_warnings_stand_on_stderr_and_in_the_summary(folder: Path) -> None:
    write_set(Path("russian"), ["Кошка"], [["Кошка сидела"]], text=True)
    result = _run("--predictions", "russian")
    assert result.exit_code == 0, result.output
    warning = "rouge: the tokenizer default throws away 100% of the letters of the references"
    assert f"warning: {warning}" in result.stderr
    assert "warning" not in result.stdout
    (kept,) = json.loads(Path("data/scores/summary.json").read_bytes())["warnings"]
    assert kept.startswith(warning)
    assert kept.endswith("use tokenizer: unicode")
    quiet = _run("--predictions", "russian", "-S", "score.metrics=[{rouge: {tokenizer: unicode}}]")
    assert "warning" not in quiet.stderr
    assert json.loads(Path("data/scores/summary.json").read_bytes())["warnings"] == []
