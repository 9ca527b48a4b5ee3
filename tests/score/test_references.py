from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.score.config import ScoreConfig
from pipeline.score.references import REFERENCES_HASH, hash_references
from pipeline.score.run import score
from tests.score.sets import PREDICTIONS, REFERENCES, write_set
from tests.score.strategies import any_text

lists = st.lists(st.lists(any_text, min_size=1, max_size=3), max_size=6)


@given(references=lists, cut=st.integers(0, 6))
def test_each_row_by_itself(references: list[list[str]], cut: int) -> None:
    whole = hash_references(references)
    assert whole.dtype == np.int64
    assert whole.shape == (len(references),)
    parts = [hash_references(references[:cut]), hash_references(references[cut:])]
    assert np.array_equal(np.concatenate(parts), whole)


@given(references=lists)
def test_equal_hashes_are_equal_references(references: list[list[str]]) -> None:
    hashes = hash_references(references).tolist()
    rows = sorted(zip(hashes, references, strict=True))
    for (one, ours), (other, theirs) in pairwise(rows):
        assert (one == other) == (ours == theirs)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["ab", "c"], ["a", "bc"]),
        (["a", "b"], ["b", "a"]),
        (["a"], ["a", "a"]),
        (["1:a1:b"], ["a", "b"]),
        (["a\0b"], ["a", "b"]),
        (["é"], ["e\u0301"]),
    ],
)
def test_what_differs(one: list[str], other: list[str]) -> None:
    first, second = hash_references([one, other])
    assert first != second


def test_the_hash_is_the_same_everywhere() -> None:
    # Made by the first version (BLAKE2b, 64 bits); a change here parts all scores ever written.
    assert hash_references([["a"], ["é", "b"]]).tolist() == [
        3405396810240292928,
        -3220870320980081676,
    ]


def test_scores_hold_it_whatever_the_chunks_and_without_the_dropped_blank(tmp_path: Path) -> None:
    write_set(tmp_path / "set", chunk_rows=2)
    score(tmp_path / "set", tmp_path / "scores", tmp_path / "m.json", ScoreConfig(replicates=5))
    found = []
    for path in sorted((tmp_path / "scores").glob("chunk-*.parquet")):
        found += pq.ParquetFile(path).read().column(REFERENCES_HASH).to_pylist()
    assert len(found) == len(PREDICTIONS)
    assert found == hash_references([[t for t in row if t.strip()] for row in REFERENCES]).tolist()


def test_the_summary_names_each_metric_and_all_its_options(tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    config = ScoreConfig(metrics=("bleu", {"bleu": {"lowercase": True}}), replicates=5)
    score(tmp_path / "set", tmp_path / "scores", tmp_path / "m.json", config)
    metrics = json.loads((tmp_path / "scores/summary.json").read_bytes())["metrics"]
    assert [entry["metric"] for entry in metrics.values()] == ["bleu", "bleu"]
    assert [entry["options"]["lowercase"] for entry in metrics.values()] == [False, True]
    assert metrics["bleu"]["options"]["max_ngram_order"] == 4
