"""Interrupted and resumed equals uninterrupted, with a model: greedy, beams, sampled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.predict.config import PredictConfig
from pipeline.predict.run import Result, predict
from pipeline.store.prediction_set import PredictionSet
from tests.examples import write_examples
from tests.models import TEXTS
from tests.predict.fake import Silent

ROWS = [f"{row} {TEXTS[row % 4]}" for row in range(11)]
DECODING: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beams": {"num_beams": 2},
    "sampled": {"do_sample": True, "top_p": 0.9},
}


class StopError(Exception):
    pass


def stop(chunk: int) -> None:
    if chunk == 1:
        raise StopError


def run(place: Path, model: Path, out: str, progress: Silent, **keys: Any) -> Result:
    config = PredictConfig(**{"device": "cpu", "chunk_rows": 3, "max_batch_rows": 2, **keys})
    return predict(
        config,
        model=model,
        examples=place / "examples.parquet",
        predictions=place / out / "predictions",
        telemetry=place / out / "telemetry.csv",
        progress=progress,
    )


def table_of(folder: Path) -> pa.Table:
    found = PredictionSet(folder / "predictions")
    return pa.concat_tables([found.reader(chunk).read() for chunk in found.present()])


@pytest.mark.parametrize("name", DECODING)
def test_resumed_equals_uninterrupted(name: str, gpt2: Path, tmp_path: Path) -> None:
    write_examples(tmp_path / "examples.parquet", ROWS)
    keys = {"generation": {"max_new_tokens": 6, **DECODING[name]}, "logprob": True}
    with pytest.raises(StopError):
        run(tmp_path, gpt2, "resumed", Silent(stop), **keys)
    assert run(tmp_path, gpt2, "resumed", Silent(), **keys).kept == 2
    run(tmp_path, gpt2, "whole", Silent(), **keys)
    whole = tmp_path / "whole/predictions"
    for path in whole.rglob("*"):
        if path.is_file():
            other = tmp_path / "resumed/predictions" / path.relative_to(whole)
            assert other.read_bytes() == path.read_bytes(), path.name
    logprob = table_of(tmp_path / "whole").column("logprob")
    assert logprob.type == pa.float64()
    assert all(value < 0 for value in logprob.to_pylist())


def test_samples_do_not_depend_on_batches_and_chunks(gpt2: Path, tmp_path: Path) -> None:
    write_examples(tmp_path / "examples.parquet", ROWS)
    keys = {"generation": {"max_new_tokens": 6, "do_sample": True}}
    for rows in (1, 4, 11):
        run(tmp_path, gpt2, str(rows), Silent(), chunk_rows=rows, max_batch_rows=rows, **keys)
    first, *others = (
        table_of(tmp_path / rows).column("prediction_ids").to_pylist() for rows in ("1", "4", "11")
    )
    assert all(other == first for other in others)
    assert len({tuple(ids) for ids in first}) == len(ROWS)
