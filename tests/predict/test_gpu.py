"""What only a CUDA device can show; skipped without one (benchmarks/gpu_check.sh runs them)."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.config import parse_section
from pipeline.predict.config import PredictConfig
from pipeline.predict.run import predict
from pipeline.store.prediction_set import PredictionSet
from tests.examples import write_examples
from tests.models import TEXTS, save_gpt2
from tests.predict.fake import Silent

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    save_gpt2(tmp_path / "model", pad=False, window=1024)
    write_examples(tmp_path / "examples.parquet", [f"{n} {TEXTS[n % 4] * 20}" for n in range(200)])
    return tmp_path


def run(place: Path, out: str, **settings: Any) -> tuple[list[list[int]], list[dict[str, str]]]:
    generation = {"max_new_tokens": 16, "min_new_tokens": 16}
    keys = {"device": "cuda", "chunk_rows": 100, "max_batch_rows": 100, "max_batch_tokens": None}
    config = parse_section(keys | {"generation": generation} | settings, "predict", PredictConfig)
    predict(
        config,
        model=place / "model",
        examples=place / "examples.parquet",
        predictions=place / out / "predictions",
        telemetry=place / out / "telemetry.csv",
        progress=Silent(),
    )
    made = PredictionSet(place / out / "predictions")
    ids = [
        row
        for chunk in made.present()
        for row in made.reader(chunk).read().column("prediction_ids").to_pylist()
    ]
    with (place / out / "telemetry.csv").open() as handle:
        return ids, list(csv.DictReader(handle))


def test_a_real_out_of_memory_is_recovered_from(place: Path) -> None:
    whole, lines = run(place, "whole")
    peak = max(int(line["allocated_peak_bytes"]) for line in lines)
    before = min(int(line["allocated_before_bytes"]) for line in lines)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((before + (peak - before) / 3) / total)
    try:
        tight, lines = run(place, "tight")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert sum(int(line["oom_events"]) for line in lines) >= 1
    assert tight == whole


def test_memory_stays_flat_over_the_chunks(place: Path) -> None:
    _, lines = run(place, "flat", chunk_rows=4)
    assert len(lines) == 50
    for column in ("allocated_after_bytes", "reserved_after_bytes"):
        after = [int(line[column]) for line in lines][2:]
        assert max(after) - min(after) <= 0.01 * max(after), column


def test_half_precision_on_the_device(place: Path) -> None:
    ids, lines = run(place, "half", dtype="bfloat16")
    assert [len(row) for row in ids] == [16] * 200
    assert all(int(line["allocated_peak_bytes"]) > 0 for line in lines)
