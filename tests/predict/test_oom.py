"""Out of memory, with an engine that has room for so many tokens."""

from __future__ import annotations

import csv
import gc
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.errors import OutOfMemoryError
from pipeline.predict.engine import Prediction
from pipeline.predict.memory import DeviceMemory
from pipeline.predict.oom import BUDGET_FILE, is_out_of_memory
from pipeline.predict.prompt import Prompt
from pipeline.store.chunk import chunk_name
from pipeline.store.work import WorkStore
from tests.examples import write_examples
from tests.predict.fake import FakeEngine, Silent
from tests.predict.test_run import place, rows_of, run

__all__ = ["place"]


class SmallEngine(FakeEngine):
    """Has room for ``room`` tokens, padding and new ones included."""

    def __init__(self, room: int, error: BaseException | None = None) -> None:
        super().__init__()
        self.room = room
        self.sizes: list[tuple[int, int]] = []
        self._raised = error

    def predict(self, batch: Sequence[Prompt]) -> list[Prediction]:
        size = len(batch) * (max(len(prompt.ids) for prompt in batch) + self.new_tokens)
        self.sizes.append((len(batch), size))
        if size > self.room:
            raise self._raised or torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")
        return super().predict(batch)


def telemetry(place: Path, column: str) -> list[int]:
    with (place / "out/telemetry.csv").open() as handle:
        return [int(line[column] or 0) for line in csv.DictReader(handle)]


def budget(place: Path) -> dict[str, Any]:
    (store,) = (place / "out/.partial").glob("*/")
    return WorkStore(place / "out/predictions", store.name).note(BUDGET_FILE)


def test_a_batch_that_does_not_fit_is_halved_and_the_smaller_budget_kept(place: Path) -> None:
    engine, progress = SmallEngine(room=420), Silent()  # a row takes 68 to 119 tokens
    run(place, engine, progress, max_batch_rows=16, chunk_rows=12)
    failed = [size for size in engine.sizes if size[1] > 420]
    assert [rows for rows, _ in failed] == [12, 6]  # and never again: 3 rows fit
    assert max(engine.batches) == 3
    assert telemetry(place, "oom_events") == [2, 0]
    assert telemetry(place, "rows") == [12, 11]
    assert engine.memory.emptied == 2 + 2  # per chunk, and per event
    width = failed[0][1] // 12
    assert progress.notes == [
        f"out of memory with 12 rows of {width} tokens; going on with at most 6 rows, "
        f"{6 * width} tokens per batch",
        f"out of memory with 6 rows of {width} tokens; going on with at most 3 rows, "
        f"{3 * width} tokens per batch",
    ]
    assert budget(place) == {"rows": 3, "tokens": 3 * width}
    run(place, out="roomy", max_batch_rows=16, chunk_rows=12)
    ours, theirs = rows_of(place / "out"), rows_of(place / "roomy")
    assert {row["batch_rows"] for row in ours} == {2, 3}
    assert {row["batch_rows"] for row in theirs} == {12, 11}
    for one, other in zip(ours, theirs, strict=True):
        assert one | {"batch_rows": 0} == other | {"batch_rows": 0}


def test_the_tensors_of_the_failed_attempt_are_freed_before_the_next(place: Path) -> None:
    class Tensors(SmallEngine):
        def predict(self, batch: Sequence[Prompt]) -> list[Prediction]:
            assert not [held for held in self.held if held() is not None]
            activations = torch.zeros(1000)
            self.held.append(weakref.ref(activations))
            try:
                return super().predict(batch)
            except torch.OutOfMemoryError as error:
                self_reference = error  # noqa: F841  a frame that holds its own exception
                raise

    engine = Tensors(room=420)
    engine.held = []
    engine.memory = DeviceMemory(torch.device("cpu"))
    gc.disable()  # only what the retry itself collects
    try:
        run(place, engine, max_batch_rows=16, chunk_rows=12)
    finally:
        gc.enable()
    assert len(engine.held) > 4


@pytest.fixture
def two_giants(place: Path) -> Path:
    """Rows 3 and 11 need more than 400 tokens each; the others fit three at a time."""
    texts = [f"row {row} " + "word " * (200 if row in (3, 11) else 1) for row in range(20)]
    write_examples(place / "examples.parquet", texts)
    return place


def test_a_row_that_does_not_fit_leaves_its_chunk_unwritten_and_the_others_are_made(
    two_giants: Path,
) -> None:
    engine = SmallEngine(room=400)
    message = (
        r"^2 rows do not fit the memory, not even alone: row 3 \(id 'id-3'\), row 11 \(id "
        r"'id-11'\); 2 of 4 chunks are done, without chunk-00000.parquet, chunk-00002.parquet: "
        r"run it again with more memory, or set .*predict.on_oom=record"
    )
    with pytest.raises(OutOfMemoryError, match=message):
        run(two_giants, engine, max_batch_rows=4)
    (store,) = (two_giants / "out/.partial").glob("*/")
    assert sorted(path.name for path in store.glob("chunk-*")) == [chunk_name(1), chunk_name(3)]
    assert not (two_giants / "out/predictions").exists()
    # A row too large alone says nothing about a batch of others: all halvings were taken back.
    assert budget(two_giants) == {"rows": 4, "tokens": 8192}
    assert run(two_giants, SmallEngine(room=10**6), max_batch_rows=4).kept == 2
    assert [row["finish_reason"] for row in rows_of(two_giants / "out")] == ["eos"] * 20


def test_a_row_that_does_not_fit_is_recorded_where_that_is_asked_for(two_giants: Path) -> None:
    result = run(two_giants, SmallEngine(room=400), max_batch_rows=4, on_oom="record")
    assert result.tally is not None
    assert (result.tally.rows, result.tally.out_of_memory) == (20, 2)
    for number, row in enumerate(rows_of(two_giants / "out")):
        if number in (3, 11):
            assert (row["prediction_ids"], row["finish_reason"]) == ([], "oom")
            assert row["batch_rows"] == 1
            assert row["prompt_tokens"] > 400
        else:
            assert (bool(row["prediction_ids"]), row["finish_reason"]) == (True, "eos")
    assert telemetry(two_giants, "oom_events") == [3, 0, 3, 0]  # 4, 2 and 1 rows


def test_a_recorded_row_of_a_model_that_stores_text_is_empty_text(two_giants: Path) -> None:
    engine = SmallEngine(room=400)
    engine.tokenizer_json = None
    real = engine.predict
    engine.predict = lambda batch: [  # type: ignore[method-assign]
        Prediction(made.ids, made.finish_reason, text="said") for made in real(batch)
    ]
    run(two_giants, engine, max_batch_rows=4, on_oom="record")
    texts = [row["prediction"] for row in rows_of(two_giants / "out")]
    assert texts == ["" if number in (3, 11) else "said" for number in range(20)]


def test_a_recorded_row_has_null_in_the_columns_of_its_engine(two_giants: Path) -> None:
    engine = SmallEngine(room=400)
    engine.optional = ("logprob",)
    run(two_giants, engine, max_batch_rows=4, on_oom="record")
    values = [row["logprob"] for row in rows_of(two_giants / "out")]
    assert [number for number, value in enumerate(values) if value is None] == [3, 11]


def test_an_engine_that_takes_rows_one_by_one_is_left_to(place: Path) -> None:
    engine = SmallEngine(room=10**6)
    engine.max_rows = 1
    run(place, engine, max_batch_rows=4)
    assert set(engine.batches) == {1}


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("whatever it says"),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported"),
        RuntimeError("MPS backend out of memory (MPS allocated: 8.00 GB, other allocations"),
        RuntimeError("XPU out of memory. Tried to allocate 20.00 MiB (GPU 0; 3.9 GiB total"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"),
        RuntimeError("level_zero backend failed with error: UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"),
        MemoryError(),
    ],
)  # fmt: skip
def test_what_allocators_say(error: BaseException, place: Path) -> None:
    assert is_out_of_memory(error)
    run(place, SmallEngine(room=240, error=error), max_batch_rows=4)
    assert sum(telemetry(place, "oom_events")) == 1


def test_what_the_cpu_says() -> None:
    with pytest.raises(RuntimeError, match="memory") as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)


@pytest.mark.parametrize("error", [RuntimeError("CUDA error: device-side assert"), ValueError()])
def test_other_errors_are_not_retried(error: BaseException, place: Path) -> None:
    assert not is_out_of_memory(error)
    engine = SmallEngine(room=0, error=error)
    with pytest.raises(type(error)):
        run(place, engine)
    assert len(engine.sizes) == 1


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.predict.fake import Silent
from tests.predict.test_oom import SmallEngine
from tests.predict.test_run import run
def kill(chunk):
    if chunk == 0:
        os.kill(os.getpid(), signal.SIGKILL)
run(Path(sys.argv[1]), SmallEngine(room=420), Silent(kill), max_batch_rows=16, chunk_rows=12)
"""


def test_the_smaller_budget_survives_a_kill(place: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(place)])
    assert killed.returncode == -signal.SIGKILL
    assert budget(place)["rows"] == 3
    engine = SmallEngine(room=420)
    result = run(place, engine, max_batch_rows=16, chunk_rows=12)
    assert (result.made, result.kept) == (1, 1)
    assert max(engine.batches) == 3
    assert telemetry(place, "oom_events") == [2, 0]  # nothing failed again
