"""What a metric of the person's own may do wrong: an error in one line, never another number."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.score.config import ScoreConfig
from pipeline.score.metrics import parse_metrics
from pipeline.score.run import score
from tests.score.sets import write_set

MODULE = """
import sys
import threading

import numpy as np

from pipeline.score.metrics.base import Column, Metric


class Good(Metric):
    columns = (Column("x.rows", integer=True), Column("x.sum", integer=False))
    headline = ("x",)

    def statistics(self, predictions, references):
        return np.ones((len(predictions), 2))

    def scores(self, totals, per_row=False):
        return {"x": totals[1] / totals[0] if totals[0] else None}

    def signature(self, references_per_row=None):
        return "version:1"


def gives(method, value):
    return type("Gives", (Good,), {method: lambda *_, **__: value})


def filled(value):
    return lambda self, predictions, references: np.full((len(predictions), 2), value)


class Changes(Good):
    def statistics(self, predictions, references):
        rows = len(predictions)
        predictions[:] = ["x"] * rows
        for texts in references:
            texts[:] = ["x"]
        return np.ones((rows, 2))


class Raises(Good):
    def statistics(self, predictions, references):
        raise KeyError("no such\\nkey")


class Exits(Good):
    def statistics(self, predictions, references):
        sys.exit(3)


class Divides(Good):
    def scores(self, totals, per_row=False):
        return {"x": totals[1] / 0}


class Unready(Good):
    def __init__(self, options=None):
        pass


class Locked(Good):
    def __init__(self, options=None):
        super().__init__(options)
        self.lock = threading.Lock()  # does not pickle


Wide = gives("statistics", np.ones((3, 3)))
Words = gives("statistics", [["a", None]] * 3)
Lists = gives("statistics", [[1, 2], [1, 2], [1, 2]])
Single = gives("statistics", np.ones((3, 2), np.float32))
NotANumber = type("NotANumber", (Good,), {"statistics": filled(float("nan"))})
Half = type("Half", (Good,), {"statistics": filled(0.5)})
Large = type("Large", (Good,), {"statistics": filled(2.0**60)})
Sums = type("Sums", (Good,), {"statistics": lambda s, p, r: np.full((len(p), 2), [1, 2.0**31])})
Nothing = gives("scores", None)
Other = gives("scores", {"y": 1.0})
Text = gives("scores", {"x": "1"})
Infinite = gives("scores", {"x": float("inf")})
Numpy = gives("scores", {"x": np.float64(2), "x.rows": np.int64(3)})
Unsigned = gives("signature", None)
Warns = gives("warnings", "careful")
Short = gives("example_scores", {"x": np.zeros(1)})
Tuples = type("Tuples", (Good,), {"columns": (("x.rows", True),)})
OneName = type("OneName", (Good,), {"headline": "x"})
NoScale = type("NoScale", (Good,), {"scale": 0})
Row = type("Row", (Good,), {"columns": (Column("row", integer=True),)})
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "guarded_metric.py").write_text(MODULE)
    (tmp_path / "leaving_metric.py").write_text("raise SystemExit(2)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("guarded_metric", "leaving_metric"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    write_set(tmp_path / "set", ["a b", "c", "d"], [["a b"], ["y"], ["z"]], text=True, chunk_rows=3)
    return tmp_path


def _score(own: Path, name: str, **settings: object) -> dict[str, object]:
    metrics = ({"custom": f"guarded_metric:{name}"}, "exact_match")
    config = ScoreConfig(metrics=metrics, replicates=10, **settings)  # type: ignore[arg-type]
    summary = score(own / "set", own / "scores", own / "metrics.json", config, worker_rows=0)
    return {
        score: None if entry is None else entry["value"]
        for metric in summary["metrics"].values()
        for score, entry in metric["scores"].items()
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Raises", r"Raises': statistics failed: KeyError: 'no such.* \(guarded_metric.py line \d"),
        ("Exits", "statistics failed: SystemExit: 3"),
        ("Divides", "scores failed: ZeroDivisionError: .* line "),
        ("Wide", r"statistics gave a matrix of \(3, 3\), not of \(rows, columns\) = \(3, 2\)"),
        ("Words", "statistics gave .* which is no matrix of numbers"),
        ("NotANumber", "a statistic x.rows that is infinite or not a number"),
        ("Half", "a statistic x.rows that is no whole number"),
        ("Large", r"a statistic x.rows of 9.01e\+15 or more"),
        ("Sums", r"the statistic x.sum sums to 6.44e\+09, .* less than 4.29e\+09: give it in a la"),
        ("Nothing", "scores gave None; expected scores that begin with the headline"),
        ("Other", "scores gave {'y': 1.0}; expected scores that begin with the headline"),
        ("Text", "scores gave '1' as x; expected a number, or None"),
        ("Infinite", "scores gave inf as x; expected a number, or None"),
        ("Unsigned", "signature gave None, which is no text"),
        ("Warns", "warnings gave 'careful', which is no list of texts"),
        ("Short", "example_scores gave no score per row for x"),
        ("Unready", r"has no options: call super\(\).__init__\(options\)"),
        ("Tuples", r"has the columns \(\('x.rows', True\),\); expected a tuple of .*Column"),
        ("OneName", "has the headline 'x'; expected a tuple of names"),
        ("NoScale", "has the scale 0; expected a number above 0"),
        ("Row", "'guarded_metric:Row' has a score or statistic 'row', .* a column of every set"),
    ],
)
def test_what_breaks_the_contract_is_named(own: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _score(own, name)
    assert not (own / "scores").exists()


@pytest.mark.parametrize(
    ("name", "x"), [("Good", 1.0), ("Lists", 2.0), ("Single", 1.0), ("Numpy", 2.0)]
)
def test_what_can_be_read_as_numbers_is(own: Path, name: str, x: float) -> None:
    assert _score(own, name) == {"x": x, "exact_match": 1 / 3}


def test_it_cannot_change_what_other_metrics_read(own: Path) -> None:
    assert _score(own, "Changes") == {"x": 1.0, "exact_match": 1 / 3}


def test_sums_may_be_large_without_intervals(own: Path) -> None:
    assert _score(own, "Sums", confidence=0) == {"x": 2.0**31, "exact_match": 1 / 3}


def test_a_module_that_leaves_is_named(own: Path) -> None:
    with pytest.raises(ConfigError, match="'leaving_metric' cannot be imported: SystemExit: 2"):
        parse_metrics([{"custom": "leaving_metric:X"}])


@pytest.mark.usefixtures("own")
def test_it_pickles_whatever_it_holds() -> None:
    (named,) = parse_metrics([{"custom": "guarded_metric:Locked"}])
    again = pickle.loads(pickle.dumps(named.metric))
    assert again.kind is named.metric.kind
    assert again.statistics(["a"], [["b"]]).tolist() == [[1.0, 1.0]]
