"""Row numbers that do not begin at 0, rows missing in between, and sets of almost nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sacrebleu.metrics.bleu import BLEU

from pipeline.score.config import ScoreConfig
from pipeline.score.interval import intervals, replicate_sums, weights
from pipeline.score.metrics.bleu import Bleu
from pipeline.score.run import score
from pipeline.store.chunk import chunk_name
from tests.score.sets import PREDICTIONS, REFERENCES, write_set

CONFIG = ScoreConfig(replicates=50)


def _score(folder: Path, name: str, missing: list[int], config: ScoreConfig = CONFIG) -> bytes:
    for chunk in missing:
        (folder / name / chunk_name(chunk)).unlink()
    target = folder / f"{name}-out"
    score(
        folder / name, target / "scores", target / "metrics.json", config, allow_partial=True,
        worker_rows=0,
    )  # fmt: skip
    return (target / "scores/summary.json").read_bytes()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_rows_missing_from_other_chunks(tmp_path: Path, n_jobs: int) -> None:
    predictions, references = PREDICTIONS * 4, REFERENCES * 4
    config = ScoreConfig(replicates=50, n_jobs=n_jobs)
    found = set()
    for rows, missing in ((1, [0, 1, 2, 3, 12, 13, 14, 15]), (2, [0, 1, 6, 7]), (4, [0, 3])):
        write_set(tmp_path / f"by{rows}", predictions, references, chunk_rows=rows, seal=False)
        found.add(_score(tmp_path, f"by{rows}", missing, config))
    assert len(found) == 1
    summary = json.loads(found.pop())
    assert (summary["rows"], summary["expected_rows"], summary["complete"]) == (12, 20, False)


def test_a_row_keeps_its_weights_whatever_is_missing(tmp_path: Path) -> None:
    # Rows 1030 to 1049 of a set whose first 1030 rows are missing: weights of the second block.
    count = 1050
    predictions = [f"a b c {row % 7}" for row in range(count)]
    references = [["a b c 3 d"]] * count
    write_set(tmp_path / "set", predictions, references, chunk_rows=10, text=True, seal=False)
    summary = json.loads(_score(tmp_path, "set", list(range(103))))
    metric = Bleu()
    statistics = metric.statistics(predictions[1030:], references[1030:])
    integer = np.ones(len(metric.columns), np.bool_)
    sums = replicate_sums(statistics, integer, weights(0, 1030, 20, 50))
    expected = intervals(metric, sums, 0.95)["bleu"]
    entry = summary["metrics"]["bleu"]["scores"]["bleu"]
    assert (entry["low"], entry["high"]) == (expected.low, expected.high)
    oracle = BLEU().corpus_score(predictions[1030:], [["a b c 3 d"] * 20])
    assert entry["value"] == oracle.score


def test_no_chunk_is_there_yet(tmp_path: Path) -> None:
    write_set(tmp_path / "set", seal=False)
    summary = json.loads(_score(tmp_path, "set", [0, 1, 2]))
    assert (summary["rows"], summary["expected_rows"], summary["complete"]) == (0, 5, False)
    assert summary["metrics"]["bleu"]["scores"] == {"bleu": None}
    flat = json.loads((tmp_path / "set-out/metrics.json").read_bytes())
    assert flat == {"rows": 0, "complete": 0}


def test_one_row(tmp_path: Path) -> None:
    write_set(tmp_path / "set", ["the cat sat on a mat"], [["the cat sat on the mat"]], text=True)
    summary = json.loads(_score(tmp_path, "set", []))
    entry = summary["metrics"]["bleu"]["scores"]["bleu"]
    expected = BLEU().corpus_score(["the cat sat on a mat"], [["the cat sat on the mat"]]).score
    # A replicate has the row any number of times, which changes no ratio, or not at all.
    assert entry["value"] == expected
    assert entry["low"] == entry["high"] == pytest.approx(expected, rel=1e-12)
    undefined = summary["metrics"]["bleu"]["undefined_replicates"]["bleu"]
    assert undefined == (weights(0, 0, 1, 50) == 0).sum()


def test_a_row_group_without_rows(tmp_path: Path) -> None:
    # Other writers leave them; ours does not.
    found: list[Any] = []
    for name in ("plain", "gaps"):
        folder = tmp_path / name / "set"
        folder.parent.mkdir()
        write_set(folder, chunk_rows=9, seal=False)
        path = folder / chunk_name(0)
        table = pq.ParquetFile(path).read()
        if name == "gaps":
            with pq.ParquetWriter(path, table.schema) as writer:
                for start, stop in ((0, 0), (0, 2), (2, 2), (2, 5)):
                    writer.write_table(table.slice(start, stop - start))
            assert pq.ParquetFile(path).num_row_groups > 2
        found.append(_score(tmp_path / name, "set", []))
        rows = pq.ParquetFile(tmp_path / name / "set-out/scores" / chunk_name(0)).read()
        assert rows.column("row").to_pylist() == [0, 1, 2, 3, 4]
    assert found[0] == found[1]
