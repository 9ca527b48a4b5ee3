"""What is undefined, what is 0, and how each is written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipeline.score.config import ScoreConfig
from pipeline.score.interval import Interval, intervals
from pipeline.score.metrics.bleu import Bleu
from pipeline.score.metrics.rouge import Rouge
from pipeline.score.run import score
from tests.score.sets import write_set


def _bleu(prediction: str, references: list[str]) -> float:
    metric = Bleu()
    return float(metric.example_scores(metric.statistics([prediction], [references]))["bleu"][0])


@pytest.mark.parametrize("prediction", ["", "a b c"])
@pytest.mark.parametrize("reference", ["", " \n"])
def test_bleu_against_nothing_is_undefined(prediction: str, reference: str) -> None:
    assert np.isnan(_bleu(prediction, [reference]))


def test_bleu_of_nothing_or_of_no_match_is_0() -> None:
    assert _bleu("", ["a b c"]) == 0
    assert _bleu("x y z", ["a b c"]) == 0


@pytest.mark.parametrize(("prediction", "reference"), [("", ""), ("", "a"), ("a", ""), ("a", "b")])
def test_rouge_of_a_row_is_always_defined(prediction: str, reference: str) -> None:
    # As rouge_score has it: every row counts in the mean.
    metric = Rouge()
    statistics = metric.statistics([prediction], [[reference]])
    assert [scores.tolist() for scores in metric.example_scores(statistics).values()] == [[0]] * 4


def test_replicates_without_a_score_are_left_out_and_counted() -> None:
    metric = Rouge()
    sums = np.zeros((10, len(metric.columns)), np.int64)
    assert intervals(metric, sums, 0.95)["rouge1"] == Interval(None, None, 10)
    sums[:4, 0] = 1  # rows
    assert intervals(metric, sums, 0.95)["rouge1"] == Interval(0, 0, 6)


@pytest.mark.parametrize("text", [True, False])
def test_a_set_without_rows_has_null_scores(tmp_path: Path, text: bool) -> None:
    write_set(tmp_path / "set", [], [], text=text)
    summary = score(
        tmp_path / "set",
        tmp_path / "scores",
        tmp_path / "metrics.json",
        ScoreConfig(),
        plots=tmp_path / "plots",
    )
    assert (summary["rows"], summary["complete"]) == (0, True)
    assert summary["metrics"]["rouge"]["scores"] == dict.fromkeys(
        ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    )
    assert summary["metrics"]["bleu"]["scores"] == {"bleu": None}
    assert summary["metrics"]["bleu"]["undefined_replicates"] == {"bleu": 1000}
    assert json.loads((tmp_path / "metrics.json").read_bytes()) == {"rows": 0, "complete": 1}
    assert json.loads((tmp_path / "scores/summary.json").read_bytes()) == summary


def test_undefined_is_null_and_counted_never_0(tmp_path: Path) -> None:
    write_set(tmp_path / "set", ["a b", "c d"], [[""], [" ", "\n"]], text=True)
    summary = score(tmp_path / "set", tmp_path / "scores", tmp_path / "metrics.json", ScoreConfig())
    bleu = summary["metrics"]["bleu"]
    assert bleu["scores"] == {"bleu": None}
    assert bleu["details"]["bleu.bp"] is None
    assert bleu["undefined_rows"] == {"bleu": 2}
    assert summary["counts"]["empty_references"] == 2
    assert "bleu" not in json.loads((tmp_path / "metrics.json").read_bytes())
    rows = pq.ParquetFile(tmp_path / "scores/chunk-00000.parquet").read()
    assert rows.column("bleu").to_pylist() == [None, None]
    assert rows.column("rouge1").to_pylist() == [0, 0]
