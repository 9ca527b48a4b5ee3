"""perplexity and token_accuracy: metrics of columns that phase one's engine ``forced`` wrote."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipeline.errors import ConfigError, DamagedChunkError
from pipeline.score.config import ScoreConfig
from pipeline.score.metrics.perplexity import Perplexity
from pipeline.score.metrics.token_accuracy import TokenAccuracy
from pipeline.score.run import score
from tests.score.sets import write_set

FORCED = {
    "nll": [2.0, 0.5, 0.0, 1.25, 6.0],
    "label_tokens": [4, 1, 0, 2, 3],
    "correct_tokens": [1, 1, 0, 1, 3],
}
METRICS = ("perplexity", "token_accuracy", "bleu")


def _score(folder: Path, **how: Any) -> dict[str, Any]:
    config = ScoreConfig(metrics=METRICS, replicates=10)
    return score(folder / "set", folder / "scores", folder / "metrics.json", config, **how)


def test_sums_over_tokens(tmp_path: Path) -> None:
    write_set(tmp_path / "set", optional=FORCED)
    summary = _score(tmp_path, plots=tmp_path / "plots")
    perplexity = summary["metrics"]["perplexity"]
    # Oracle: the definition, e to the mean over all tokens (Jelinek et al. 1977).
    assert perplexity["scores"]["perplexity"]["value"] == math.exp(9.75 / 10)
    assert perplexity["undefined_rows"] == {"perplexity": 1}
    accuracy = summary["metrics"]["token_accuracy"]["scores"]["token_accuracy"]
    assert accuracy["value"] == 0.6
    assert accuracy["low"] <= 0.6 <= accuracy["high"]
    written = json.loads((tmp_path / "metrics.json").read_bytes())
    assert written["perplexity"] == math.exp(0.975)
    rows = pq.ParquetFile(tmp_path / "scores/chunk-00001.parquet").read()
    assert rows.column("perplexity").to_pylist() == [None, math.exp(1.25 / 2)]
    assert rows.column("token_accuracy.correct_tokens").to_pylist() == [0, 1]


def test_texts_that_nobody_generated_are_no_silent_scores(tmp_path: Path) -> None:
    write_set(tmp_path / "set", optional=FORCED, finish_reasons=["forced"] * 5)
    (warning,) = _score(tmp_path)["warnings"]
    assert warning.startswith("bleu: the texts are the best token after each true one")
    config = ScoreConfig(metrics=("perplexity",), replicates=10)
    assert score(tmp_path / "set", tmp_path / "s", tmp_path / "m.json", config)["warnings"] == []
    config = ScoreConfig(metrics=("bleu",), replicates=10)
    write_set(tmp_path / "generated")
    summary = score(tmp_path / "generated", tmp_path / "t", tmp_path / "m.json", config)
    assert summary["warnings"] == []


def test_without_the_columns_the_engine_is_named(tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    with pytest.raises(
        ConfigError,
        match="perplexity needs the column nll and label_tokens, .* predict.engine: forced",
    ):
        _score(tmp_path)
    assert not (tmp_path / "scores").exists()


@pytest.mark.parametrize("bad", [None, math.nan, math.inf])
def test_a_value_that_is_none_is_named(tmp_path: Path, bad: float | None) -> None:
    write_set(tmp_path / "set", optional={**FORCED, "nll": [1.0, 1.0, 1.0, bad, 1.0]})
    with pytest.raises(DamagedChunkError, match="row 3: nll is null, infinite or not a number"):
        _score(tmp_path)


def test_undefined() -> None:
    assert Perplexity().scores([0, 0])["perplexity"] is None
    assert Perplexity().scores([1e6, 1])["perplexity"] is None  # beyond every float
    assert Perplexity().scores([1e6, 1])["perplexity.nll_per_token"] == 1e6
    assert TokenAccuracy().scores([0, 0])["token_accuracy"] is None


def test_columns_come_with_the_rows() -> None:
    with pytest.raises(ValueError, match="the column nll is missing"):
        Perplexity().statistics(["a"], [["a"]])
    columns = {"nll": np.ones(1), "label_tokens": np.ones(2)}
    with pytest.raises(ValueError, match="1 predictions but 2 values of label_tokens"):
        Perplexity().statistics(["a"], [["a"]], columns)


def test_signatures() -> None:
    assert Perplexity().signature() == "loss:nats|mean:tokens|version:1"
    assert TokenAccuracy().signature(3) == "choice:first|version:1"
