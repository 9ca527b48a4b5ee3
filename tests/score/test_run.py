from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score import rouge_scorer
from sacrebleu.metrics.bleu import BLEU

from pipeline.errors import (
    ConfigError,
    DamagedChunkError,
    FingerprintError,
    MissingChunksError,
    PredictionSetError,
    ScoresError,
)
from pipeline.score import run as run_module
from pipeline.score.config import ScoreConfig
from pipeline.score.run import score
from pipeline.score.statistics import blocks
from pipeline.store.chunk import ChunkReader, chunk_name
from tests.score.sets import PREDICTIONS, REFERENCES, write_set
from tests.score.strategies import any_text, rows


def _score(folder: Path, out: str = "out", **how: Any) -> dict[str, Any]:
    config = how.pop("config", None) or ScoreConfig(replicates=how.pop("replicates", 50))
    target = folder.parent / out
    return score(folder, target / "scores", target / "metrics.json", config, **how)


def _results(folder: Path, out: str = "out") -> tuple[bytes, bytes]:
    target = folder.parent / out
    return (target / "metrics.json").read_bytes(), (target / "scores/summary.json").read_bytes()


def test_results(tmp_path: Path) -> None:
    write_set(
        tmp_path / "set",
        finish_reasons=["eos", "length", "eos", "eos", "length"],
        keep={"topic": ["a", "b", "a", "b", "a"]},
    )
    summary = _score(tmp_path / "set")
    metrics, written = map(json.loads, _results(tmp_path / "set"))
    assert written == summary
    assert list(metrics) == ["rouge1", "rouge2", "rougeL", "rougeLsum", "bleu", "rows", "complete"]
    assert (metrics["rows"], metrics["complete"]) == (5, 1)
    assert metrics["bleu"] == summary["metrics"]["bleu"]["scores"]["bleu"]["value"]
    assert summary["counts"] == {
        "empty_predictions": 1,
        "empty_references": 0,
        "dropped_references": 1,
        "null_references": 0,
        "truncated": 1,
        "finish_reasons": {"eos": 3, "length": 2},
        "out_of_vocabulary_ids": 0,
    }
    rouge = summary["metrics"]["rouge"]["scores"]["rouge1"]
    assert 0 < rouge["low"] < rouge["value"] < rouge["high"] < 1
    assert "nrefs:var" in summary["metrics"]["bleu"]["signature"]  # one row has two

    folder = tmp_path / "out/scores"
    names = sorted(path.name for path in folder.iterdir())
    assert names == [*map(chunk_name, range(3)), "summary.json"]
    table = pq.ParquetFile(folder / chunk_name(1)).read()
    assert table.column("row").to_pylist() == [2, 3]
    assert table.column("id").to_pylist() == ["id-2", "id-3"]
    assert table.column("topic").to_pylist() == ["a", "b"]
    assert table.column("finish_reason").to_pylist() == ["eos", "eos"]
    assert table.column("rouge1.fmeasure").to_pylist() == table.column("rouge1").to_pylist()
    assert table.schema.field("bleu.correct_1").type == "int64"
    assert table.schema.names[:5] == ["row", "id", "finish_reason", "topic", "rouge.rows"]


def test_scores_equal_the_oracles(tmp_path: Path) -> None:
    # rouge_score's exact mean; sacrebleu.corpus_score, the blank reference left out.
    write_set(tmp_path / "set", PREDICTIONS, REFERENCES, text=True)
    _score(tmp_path / "set")
    metrics = json.loads(_results(tmp_path / "set")[0])
    scorer = rouge_scorer.RougeScorer(["rouge1", "rougeLsum"])
    for kind in ("rouge1", "rougeLsum"):
        means = [
            scorer.score_multi(references, prediction)[kind].fmeasure
            for prediction, references in zip(PREDICTIONS, REFERENCES, strict=True)
        ]
        assert metrics[kind] == math.fsum(means) / len(means)
    streams = [[row[0] for row in REFERENCES], [None, REFERENCES[1][1], None, None, None]]
    assert metrics["bleu"] == BLEU().corpus_score(PREDICTIONS, streams).score


@settings(deadline=None, max_examples=12)
@given(
    examples=st.lists(
        st.tuples(any_text, st.lists(any_text, min_size=1, max_size=2)), min_size=1, max_size=30
    ),
    chunk_rows=st.integers(1, 7),
    text=st.booleans(),
)
def test_any_chunks_give_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    examples: list[tuple[str, list[str]]],
    chunk_rows: int,
    text: bool,
) -> None:
    folder = tmp_path_factory.mktemp("sets")
    predictions, references = [row[0] for row in examples], [row[1] for row in examples]
    found = []
    for name, size in (("whole", 100), ("cut", chunk_rows)):
        write_set(folder / name, predictions, references, chunk_rows=size, text=text)
        _score(folder / name, name)
        found.append(_results(folder / name, name))
    assert found[0] == found[1]


def test_any_workers_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predictions, references = PREDICTIONS * 300, REFERENCES * 300  # beyond one bootstrap block
    monkeypatch.setattr(run_module, "CALL_ROWS", 200)
    write_set(tmp_path / "set", predictions, references, chunk_rows=70)
    write_set(tmp_path / "whole", predictions, references, chunk_rows=5000)
    found = {}
    for out, config in {
        "one": ScoreConfig(),
        "two": ScoreConfig(n_jobs=2),
        "threads": ScoreConfig(n_jobs=3, backend="threading"),
    }.items():
        done: list[int] = []
        _score(tmp_path / "set", out, config=config, worker_rows=0, progress=done.append)
        assert sum(done) == 1500
        assert len(done) > 2
        found[out] = _results(tmp_path / "set", out)
    _score(tmp_path / "whole", "whole", config=ScoreConfig())
    found["whole"] = _results(tmp_path / "whole", "whole")
    assert len(set(found.values())) == 1


def test_a_small_set_is_scored_in_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_set(tmp_path / "set")
    monkeypatch.setattr("pipeline.score.pool._run_in_workers", None)
    _score(tmp_path / "set", config=ScoreConfig(n_jobs=2))


def test_no_confidence_no_intervals(tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    with_intervals = _score(tmp_path / "set")
    without = _score(tmp_path / "set", "none", config=ScoreConfig(confidence=0.0))
    for name, metric in without["metrics"].items():
        assert metric["undefined_replicates"] == {}
        for kind, entry in metric["scores"].items():
            assert (entry["low"], entry["high"]) == (None, None)
            assert entry["value"] == with_intervals["metrics"][name]["scores"][kind]["value"]


def test_seed_and_replicates_change_intervals_alone(tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    entries = [
        _score(tmp_path / "set", config=ScoreConfig(seed=seed, replicates=replicates))["metrics"][
            "rouge"
        ]["scores"]["rouge1"]
        for seed, replicates in ((0, 50), (1, 50), (0, 49))
    ]
    assert len({entry["value"] for entry in entries}) == 1
    assert len({entry["high"] for entry in entries}) == 3


def test_two_of_one_metric_stand_side_by_side(tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    config = ScoreConfig(metrics=("bleu", {"bleu": {"tokenize": "char"}}), replicates=10)
    summary = _score(tmp_path / "set", config=config, plots=tmp_path / "plots")
    assert list(summary["metrics"]) == ["bleu", "bleu[tokenize=char]"]
    metrics = json.loads(_results(tmp_path / "set")[0])
    assert list(metrics) == ["bleu", "bleu[tokenize=char]", "rows", "complete"]
    assert metrics["bleu"] != metrics["bleu[tokenize=char]"]
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == [
        "bleu.csv",
        "bleu[tokenize=char].csv",
    ]
    table = pq.ParquetFile(tmp_path / "out/scores" / chunk_name(0)).read()
    assert {"bleu.sys_len", "bleu[tokenize=char].sys_len"} <= set(table.schema.names)


def test_a_block_of_the_bootstrap_is_never_crossed(tmp_path: Path) -> None:
    card = write_set(tmp_path / "set", ["a"] * 2100, [["a"]] * 2100, chunk_rows=1050, text=True)
    reader = ChunkReader(tmp_path / "set" / chunk_name(1), card, 1)
    (table,) = reader.tables()
    assert [len(block) for block in blocks(table)] == [998, 52]


def test_missing_chunks(tmp_path: Path) -> None:
    write_set(tmp_path / "set", seal=False)
    (tmp_path / "set" / chunk_name(1)).unlink()
    with pytest.raises(MissingChunksError, match=r"1 of 3 chunks are missing \(chunk-00001"):
        _score(tmp_path / "set")
    summary = _score(tmp_path / "set", allow_partial=True)
    assert (summary["rows"], summary["expected_rows"], summary["complete"]) == (3, 5, False)
    assert json.loads(_results(tmp_path / "set")[0])["complete"] == 0
    assert not (tmp_path / "out/scores" / chunk_name(1)).exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_all_damaged_chunks_are_named_and_scores_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(run_module, "CALL_ROWS", 1)
    write_set(tmp_path / "set", chunk_rows=1)
    _score(tmp_path / "set")
    before = _results(tmp_path / "set")
    for chunk in (1, 3):
        path = tmp_path / "set" / chunk_name(chunk)
        path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(
        DamagedChunkError,
        match=r"chunk-00001.parquet is damaged: its sha256 .* fault in chunk-00003.parquet\)$",
    ):
        _score(tmp_path / "set", config=ScoreConfig(n_jobs=workers), worker_rows=0)
    assert _results(tmp_path / "set") == before
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["metrics.json", "scores"]


def test_a_chunk_of_another_run(tmp_path: Path) -> None:
    write_set(tmp_path / "set", seal=False)
    write_set(tmp_path / "other")
    (tmp_path / "other" / chunk_name(0)).replace(tmp_path / "set" / chunk_name(0))
    with pytest.raises(FingerprintError, match="two runs were mixed"):
        _score(tmp_path / "set")


def test_a_row_that_cannot_be_scored(tmp_path: Path) -> None:
    write_set(tmp_path / "set", [[1], [2], [3, -100]], [["x"]] * 3)
    with pytest.raises(DamagedChunkError, match=r"chunk-00001.parquet, row 2: token id -100"):
        _score(tmp_path / "set")


def test_an_unknown_id_is_counted(tmp_path: Path) -> None:
    write_set(tmp_path / "set", [[5, 99_999], [99_998]], [["x"]] * 2)
    assert _score(tmp_path / "set")["counts"]["out_of_vocabulary_ids"] == 2


def test_a_set_without_its_tokenizer(tmp_path: Path) -> None:
    write_set(tmp_path / "set", seal=False)
    (tmp_path / "set/tokenizer/tokenizer.json").unlink()
    with pytest.raises(PredictionSetError, match="token ids but no tokenizer/tokenizer.json"):
        _score(tmp_path / "set")


def test_a_damaged_tokenizer(tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    path = tmp_path / "set/tokenizer/tokenizer.json"
    path.write_text(path.read_text() + " ")
    with pytest.raises(PredictionSetError, match="tokenizer.json is damaged: its sha256"):
        _score(tmp_path / "set")


def test_no_prediction_set(tmp_path: Path) -> None:
    with pytest.raises(PredictionSetError, match="is not a prediction set"):
        _score(tmp_path / "set")


def test_settings_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    with pytest.raises(ConfigError, match="unknown metric 'blue'"):
        _score(tmp_path / "set", config=ScoreConfig(metrics=("blue",)))
    with pytest.raises(ConfigError, match="score.n_jobs"):
        _score(tmp_path / "set", config=ScoreConfig(n_jobs=0))
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


def test_scores_never_replace_the_predictions(tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    with pytest.raises(ScoresError, match="is not a folder of scores"):
        score(tmp_path / "set", tmp_path / "set", tmp_path / "metrics.json", ScoreConfig())
    assert (tmp_path / "set/run.json").exists()


@settings(deadline=None, max_examples=5)
@given(examples=rows().filter(bool))
def test_scoring_twice_is_scoring_once(
    tmp_path_factory: pytest.TempPathFactory, examples: list[tuple[str, list[str]]]
) -> None:
    folder = tmp_path_factory.mktemp("twice") / "set"
    write_set(folder, [row[0] for row in examples], [row[1] for row in examples])
    results = []
    for _ in range(2):
        _score(folder)
        chunks = sorted((folder.parent / "out/scores").iterdir())
        results.append([path.read_bytes() for path in chunks])
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["bleu", "bleu.sys_len", "references_hash"])
def test_a_kept_column_called_like_a_score(tmp_path: Path, name: str) -> None:
    write_set(tmp_path / "set", keep={name: ["a"] * 5})
    with pytest.raises(ConfigError, match=rf"keeps a column '{name}' \(prepare.keep\), and score"):
        _score(tmp_path / "set")


@pytest.mark.parametrize("blocked", ["metrics.json", "plots"])
def test_what_cannot_be_written_is_found_before_scores_are_replaced(
    tmp_path: Path, blocked: str
) -> None:
    write_set(tmp_path / "set", ["a"], [["a"]])
    if blocked == "plots":
        (tmp_path / blocked).write_text("a file")
    else:
        (tmp_path / blocked).mkdir()
    with pytest.raises(OSError, match=r"director|exists"):
        score(
            tmp_path / "set",
            tmp_path / "scores",
            tmp_path / "metrics.json",
            ScoreConfig(),
            plots=tmp_path / "plots",
        )
    assert not (tmp_path / "scores").exists()
