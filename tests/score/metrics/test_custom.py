"""``custom: package.module:Class``, imported from the working directory, in workers too."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ConfigError
from pipeline.score import run as run_module
from pipeline.score.config import ScoreConfig
from pipeline.score.contract import check_contract
from pipeline.score.metrics import parse_metrics
from pipeline.score.run import score
from tests.project import ROOT
from tests.score.sets import write_set

MODULE = """
import numpy as np

from pipeline.config import Config
from pipeline.score.metrics.base import Column, Metric


class Options(Config, frozen=True):
    letter: str = "e"


class Share(Metric):
    options_type = Options
    columns = (Column("share.found", integer=True), Column("share.characters", integer=True))
    headline = ("share",)

    def statistics(self, predictions, references):
        letter = self.options.letter
        rows = [[text.count(letter), len(text)] for text in predictions]
        return np.array(rows, dtype=float).reshape(-1, 2)

    def scores(self, totals, per_row=False):
        found, characters = totals
        return {"share": found / characters if characters else None}

    def signature(self, references_per_row=None):
        return f"letter:{self.options.letter}|version:1"


class Same(Share):
    headline = ("rouge1",)

    def scores(self, totals, per_row=False):
        return {"rouge1": super().scores(totals)["share"]}


class Abstract(Metric):
    pass


class NoColumns(Share):
    columns = ()


class NoComma(Share):
    columns = (Column("share.found", integer=True))


class OneText(Share):
    headline = ("share")


class OtherName(Share):
    headline = ("shares",)


class Divides(Share):
    def scores(self, totals, per_row=False):
        return {"share": totals[0] / totals[1]}


class Refuses(Share):
    def __init__(self, options=None):
        raise RuntimeError("no such letter")


NUMBER = 5
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_metric.py").write_text(MODULE)
    (tmp_path / "broken_metric.py").write_text("import nothing_of_that_name\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("own_metric", "broken_metric"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    return tmp_path


@pytest.mark.usefixtures("own")
def test_names_and_options() -> None:
    entries = [
        {"custom": "own_metric:Share"},
        {"custom": {"metric": "own_metric:Share", "options": {"letter": "a"}}},
        "bleu",
    ]
    first, second, _ = parse_metrics(entries)
    assert first.label == "own_metric:Share"
    assert (second.label, second.headline) == (
        "own_metric:Share[letter=a]",
        ("share[letter=a]",),
    )
    check_contract(second.metric, [("a cat", ["x"]), ("", ["", "y"])])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results(own: Path, monkeypatch: pytest.MonkeyPatch, n_jobs: int) -> None:
    monkeypatch.setattr(run_module, "CALL_ROWS", 1)
    write_set(own / "set", ["eel", "x", ""], [["a"]] * 3, text=True, chunk_rows=1)
    config = ScoreConfig(metrics=({"custom": "own_metric:Share"},), replicates=10, n_jobs=n_jobs)
    summary = score(own / "set", own / "scores", own / "metrics.json", config, worker_rows=0)
    entry = summary["metrics"]["own_metric:Share"]
    assert entry["scores"]["share"]["value"] == 0.5
    assert entry["signature"] == "letter:e|version:1"
    assert entry["undefined_rows"] == {"share": 1}


# The second is what the console script does: its own folder is on the path, the working one is not.
COMMANDS = [
    ["-m", "stages.score"],
    ["-P", "-c", "from stages.main import main; main()", "score"],
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_find_it_in_the_working_directory(own: Path, command: list[str]) -> None:
    write_set(own / "set", ["eel", "x"], [["a"]] * 2, text=True)
    (own / "params.yaml").write_text("score: {metrics: [{custom: 'own_metric:Share'}]}\n")
    done = subprocess.run(
        [sys.executable, *command, "--predictions", "set"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "share" in done.stdout


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("own_metric", "score.metrics.custom.metric: expected package.module:name"),
        ("elsewhere:Share", "the module 'elsewhere' cannot be imported: ModuleNotFoundError"),
        ("broken_metric:Share", "cannot be imported: ModuleNotFoundError: No module named 'noth"),
        ("own_metric:Shares", r"'own_metric' \(.*own_metric.py\) has no 'Shares'"),
        ("own_metric:NUMBER", "'own_metric:NUMBER' is 5, not a class derived from pipeline.score"),
        ("own_metric:Options", "not a class derived from pipeline.score.metrics.base.Metric"),
        ("own_metric:Abstract", "the class .* lacks scores, signature, statistics; docs/metrics"),
        ("own_metric:NoColumns", "the class 'own_metric:NoColumns' has no columns"),
        ("own_metric:NoComma", r"has the columns Column\(.*a tuple of one has a comma: \(entry,\)"),
        (
            "own_metric:OneText",
            "'own_metric:OneText' has the headline 'share'; expected a tuple",
        ),
        ("own_metric:OtherName", r"scores gave {'share': None}; expected scores that begin with"),
        ("own_metric:Divides", "scores failed: ZeroDivisionError: division by zero .*line"),
        ("own_metric:Refuses", "'own_metric:Refuses' cannot be made: RuntimeError: no such letter"),
        (
            {"metric": "own_metric:Share", "options": {"leter": "a"}},
            r"unknown key 'score.metrics.custom.options.leter' \(did you mean letter\?\)",
        ),
        ({}, "score.metrics.custom: .*metric"),
    ],
)
def test_bad_ones_are_named(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_metrics([{"custom": options}])


@pytest.mark.usefixtures("own")
def test_scores_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="'rouge' and 'own_metric:Same' both have .* 'rouge1'"):
        parse_metrics(["rouge", {"custom": "own_metric:Same"}])
    with pytest.raises(ConfigError, match="'own_metric:Share' stands twice with the same options"):
        parse_metrics([{"custom": "own_metric:Share"}] * 2)


def test_a_text_in_place_of_options() -> None:
    with pytest.raises(ConfigError, match="score.metrics.bleu: expected a map of options, got 'x"):
        parse_metrics([{"bleu": "x"}])
