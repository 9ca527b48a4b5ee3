"""Make chunks: read their rows, run the engine batch by batch, write the table.

A batch that does not fit the memory is halved, and the smaller budget kept: for the rest of this
process and, through the store, for the one that resumes. Where not even a single row fits, the
halvings on the way to it said nothing about the rows beside it, so they are taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from pipeline import signals
from pipeline.predict.batching import plan_batches
from pipeline.predict.config import PredictConfig
from pipeline.predict.engine import Engine, Prediction, Prompted
from pipeline.predict.examples import Examples
from pipeline.predict.memory import resident_bytes
from pipeline.predict.oom import Budget, attempt, read_budget, write_budget
from pipeline.predict.telemetry import ChunkMeter
from pipeline.schema import OPTIONAL_FIELDS, chunk_schema
from pipeline.store.card import RunCard
from pipeline.store.work import WorkStore

# A row's prediction, and how many rows were in its batch.
Made = tuple[Prediction, int]


class Progress(Protocol):
    """Hears how the run goes on; a command makes a bar or a log of it."""

    def begin(self, rows: int, done: int) -> None:
        """There are ``rows`` rows, of which ``done`` lie in chunks that are there already."""

    def batch(self, rows: int, new_tokens: int, memory_bytes: int | None) -> None:
        """A batch is done; memory is the device's where it counts, else the process's.

        None where it was made by another rank.
        """

    def chunk(self, chunk: int, telemetry: dict[str, int | float | None]) -> None:
        """A chunk is written."""

    def note(self, message: str) -> None:
        """Something happened that a person should know."""


@dataclass(frozen=True, slots=True)
class UnfitRow:
    """A row that does not fit the memory, not even alone."""

    row: int
    id: str
    chunk: int


class ChunkMaker:
    """Makes the chunks of one run with one engine.

    Attributes:
        left_out: rows that did not fit, and whose chunks were not written for it.
    """

    def __init__(
        self,
        config: PredictConfig,
        examples: Examples,
        engine: Engine,
        store: WorkStore,
        progress: Progress,
    ) -> None:
        self._examples = examples
        self._engine = engine
        self._store = store
        self._progress = progress
        self._card = store.card
        self._record_unfit = config.on_oom == "record"
        self._budget = read_budget(store, config)
        self.left_out: list[UnfitRow] = []

    def make(self, chunk: int) -> bool:
        """Make ``chunk``; False where it was left out because a row does not fit."""
        rows = self._examples.read(*self._card.bounds(chunk))
        with ChunkMeter(self._engine.memory) as meter:
            prompts = self._engine.prompts(rows)
            made, unfit = self._predict(prompts, meter)
        if unfit and not self._record_unfit:
            for position in unfit:
                row, identifier = (rows.column(name)[position].as_py() for name in ("row", "id"))
                self.left_out.append(UnfitRow(row, identifier, chunk))
            return False
        for position in unfit:
            made[position] = Prediction([], "oom", text=""), 1
        table = chunk_table(rows, prompts, [made[place] for place in range(len(made))], self._card)
        # What is complete is kept: a signal waits for these milliseconds.
        with signals.deferred():
            self._store.write(chunk, table, meter.entries)
            self._progress.chunk(chunk, meter.entries)
        self._store.target.put(self._store, chunk)
        return True

    def _predict(
        self, prompts: Sequence[Prompted], meter: ChunkMeter
    ) -> tuple[dict[int, Made], list[int]]:
        """What was predicted, by position, and the positions that do not fit.

        As the longest come first, those that do not fit are known as soon as a batch fits; where
        they keep the chunk from being written, the rest of it is not computed.
        """
        lengths = [prompt.length for prompt in prompts]
        made: dict[int, Made] = {}
        unfit: list[int] = []
        waiting = self._plan(lengths, list(range(len(prompts))))
        fitting = self._budget  # of the last batch that fitted
        while waiting:
            batch = waiting.pop(0)
            predictions = attempt(self._engine, [prompts[position] for position in batch])
            signals.check()
            if predictions is not None:
                if unfit and not self._record_unfit:
                    break
                fitting = self._budget
                made |= {
                    position: (prediction, len(batch))
                    for position, prediction in zip(batch, predictions, strict=True)
                }
                self._count(meter, [prompts[position] for position in batch], predictions)
                continue
            meter.oom_events += 1
            self._engine.memory.empty_cache()
            rest = [position for later in waiting for position in later]
            if len(batch) == 1:
                unfit += batch
                self._set_budget(fitting)
                waiting = self._plan(lengths, rest)
            else:
                width = lengths[batch[0]] + self._engine.new_tokens
                self._set_budget(self._budget.halved(len(batch), width))
                self._progress.note(
                    f"out of memory with {len(batch)} rows of {width} tokens; going on with at "
                    f"most {self._budget} per batch"
                )
                waiting = self._plan(lengths, batch + rest)
        return made, unfit

    def _plan(self, lengths: list[int], positions: list[int]) -> list[list[int]]:
        """Batches of ``positions`` within the budget of now, and what the engine allows."""
        batches = plan_batches(
            [lengths[position] for position in positions],
            self._engine.new_tokens,
            min(self._budget.rows, self._engine.max_rows or self._budget.rows),
            self._budget.tokens,
        )
        return [[positions[place] for place in batch] for batch in batches]

    def _set_budget(self, budget: Budget) -> None:
        self._budget = budget
        write_budget(self._store, budget)

    def _count(
        self, meter: ChunkMeter, batch: list[Prompted], predictions: list[Prediction]
    ) -> None:
        new_tokens = sum(len(prediction.ids) for prediction in predictions)
        meter.batches += 1
        meter.rows += len(batch)
        meter.prompt_tokens += sum(prompt.prompt_tokens for prompt in batch)
        meter.new_tokens += new_tokens
        allocated = self._engine.memory.allocated()
        memory_bytes = resident_bytes() if allocated is None else allocated
        self._progress.batch(len(batch), new_tokens, memory_bytes)


def chunk_table(
    rows: pa.Table, prompts: Sequence[Prompted], made: list[Made], card: RunCard
) -> pa.Table:
    """The chunk's table: the rows' own columns and what was predicted, in row order.

    An optional column is null in a row that was written empty for want of memory.
    """
    predictions = [prediction for prediction, _ in made]
    text = card.prediction == "text"
    schema = chunk_schema(
        text=text, optional=card.optional, keep=[rows.schema.field(name) for name in card.keep]
    )
    reasons = pa.array([prediction.finish_reason for prediction in predictions], pa.string())
    columns: dict[str, Any] = {
        "row": rows.column("row"),
        "id": rows.column("id"),
        "references": rows.column("references"),
        "finish_reason": reasons.dictionary_encode(),
        "prompt_tokens": pa.array([prompt.prompt_tokens for prompt in prompts], pa.int32()),
        "truncated": pa.array([prompt.truncated for prompt in prompts], pa.bool_()),
        "batch_rows": pa.array([size for _, size in made], pa.int32()),
    }
    if text:
        columns["prediction"] = pa.array([new.text for new in predictions], pa.string())
    else:
        ids = [new.ids for new in predictions]
        columns["prediction_ids"] = pa.array(ids, pa.list_(pa.int32()))
    for name in card.optional:
        values = [new.extra.get(name) for new in predictions]
        columns[name] = pa.array(values, OPTIONAL_FIELDS[name].type)
    columns |= {name: rows.column(name) for name in card.keep}
    return pa.table({name: columns[name] for name in schema.names}, schema=schema).combine_chunks()
