"""Phase one, whole: which chunks are missing, make them, seal, publish.

What is asked decides the fingerprint, the fingerprint the store; what is in the store decides
what there is to do. Killed at any moment and run again, it makes what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from pipeline.predict import fingerprint
from pipeline.predict.batching import plan_batches
from pipeline.predict.config import PredictConfig
from pipeline.predict.engine import Engine, Prediction
from pipeline.predict.examples import Examples
from pipeline.predict.prompt import Prompt, Template, check_fields, check_not_empty
from pipeline.predict.telemetry import ChunkMeter, write_telemetry
from pipeline.schema import chunk_schema
from pipeline.store.card import RunCard, fingerprint_of
from pipeline.store.work import WorkStore


class Progress(Protocol):
    """Hears how the run goes on; a command makes a bar of it."""

    def begin(self, rows: int, done: int) -> None:
        """There are ``rows`` rows, of which ``done`` lie in chunks that are there already."""

    def batch(self, rows: int, new_tokens: int) -> None:
        """A batch is done."""

    def chunk(self, chunk: int, telemetry: dict[str, int | float | None]) -> None:
        """A chunk is written."""


@dataclass(frozen=True)
class Result:
    """What a run did."""

    card: RunCard
    made: int  # chunks made by this call
    kept: int  # chunks that were there already


def predict(
    config: PredictConfig,
    *,
    model: Path,
    examples: Path,
    predictions: Path,
    telemetry: Path,
    progress: Progress,
    overwrite: bool = False,
    allow_mixed: bool = False,
    make_engine: Callable[[PredictConfig, Path, Examples], Engine] | None = None,
) -> Result:
    """Make the prediction set at ``predictions``, or what is missing of it.

    Args:
        config: the ``predict`` section.
        model: local folder with the model.
        examples: the prepared data set.
        predictions: folder of the set; the store is ``.partial/<fingerprint>`` beside it.
        telemetry: CSV of time and memory per chunk.
        progress: hears of batches and chunks.
        overwrite: start anew, and replace a set of other settings.
        allow_mixed: go on with a store that was begun under other library versions.
        make_engine: loads the model; tests put another engine here.

    Raises:
        TwophaseError: see ``pipeline.errors``; complete chunks are kept whatever happens.
    """
    data = Examples(examples)
    inputs = fingerprint.run_inputs(config, examples, model)
    store = WorkStore(predictions, fingerprint_of(inputs))
    store.check_target(inputs, overwrite=overwrite)
    with store.locked():
        if overwrite:
            store.discard()
        else:
            store.adopt()
        missing = store.missing() if store.begun else None
        if missing is None or not store.sealed:
            engine = (make_engine or _load_engine)(config, model, data)
            store.begin(_card(config, inputs, data, engine), allow_mixed=allow_mixed)
            if engine.tokenizer_json is not None:
                store.write_tokenizer(engine.tokenizer_json)
            missing = store.missing()
            _make(missing, config, data, engine, store, progress)
            store.seal()
        write_telemetry(store, telemetry)
        store.publish()
        card = store.card
    return Result(card, made=len(missing), kept=card.chunks - len(missing))


def _load_engine(config: PredictConfig, model: Path, examples: Examples) -> Engine:
    from pipeline.predict.generate import GenerateEngine
    from pipeline.predict.generation import check_generation
    from pipeline.predict.load import load

    # Mistakes in settings and data are found before the minutes that a model takes to load.
    template = Template(config.template, examples.inputs)
    check_fields(template, examples.schema)
    if template.only_fields and not config.chat:
        check_not_empty(template, examples.columns(["row", "id", *template.fields]))
    fields = check_generation(config.generation)
    return GenerateEngine(load(model, config), config, template, fields)


def _card(
    config: PredictConfig, inputs: dict[str, Any], examples: Examples, engine: Engine
) -> RunCard:
    return RunCard.plan(
        inputs=inputs,
        rows=examples.rows,
        chunk_rows=config.chunk_rows,
        versions=fingerprint.library_versions(),
        prediction="text" if engine.tokenizer_json is None else "ids",
        decode=engine.decode,
        keep=examples.keep,
    )


def _make(
    missing: list[int],
    config: PredictConfig,
    examples: Examples,
    engine: Engine,
    store: WorkStore,
    progress: Progress,
) -> None:
    card = store.card
    done = sum(stop - start for start, stop in map(card.bounds, range(card.chunks)))
    done -= sum(stop - start for start, stop in map(card.bounds, missing))
    progress.begin(card.rows, done)
    for chunk in missing:
        rows = examples.read(*card.bounds(chunk))
        with ChunkMeter(engine.memory) as meter:
            prompts = engine.prompts(rows)
            predictions, batch_rows = _predict_rows(prompts, config, engine, meter, progress)
        table = chunk_table(rows, prompts, predictions, batch_rows, card)
        store.write(chunk, table, meter.entries)
        progress.chunk(chunk, meter.entries)


def _predict_rows(
    prompts: list[Prompt],
    config: PredictConfig,
    engine: Engine,
    meter: ChunkMeter,
    progress: Progress,
) -> tuple[list[Prediction], list[int]]:
    """Predictions of a chunk's rows in row order, and the size of the batch each was in."""
    predictions: dict[int, Prediction] = {}
    batch_rows: dict[int, int] = {}
    lengths = [len(prompt.ids) for prompt in prompts]
    batches = plan_batches(
        lengths, engine.new_tokens, config.max_batch_rows, config.max_batch_tokens
    )
    for positions in batches:
        made = engine.predict([prompts[position] for position in positions])
        predictions.update(zip(positions, made, strict=True))
        batch_rows.update(dict.fromkeys(positions, len(positions)))
        new_tokens = sum(len(prediction.ids) for prediction in made)
        meter.batches += 1
        meter.rows += len(positions)
        meter.prompt_tokens += sum(lengths[position] for position in positions)
        meter.new_tokens += new_tokens
        progress.batch(len(positions), new_tokens)
    order = range(len(prompts))
    return [predictions[row] for row in order], [batch_rows[row] for row in order]


def chunk_table(
    rows: pa.Table,
    prompts: list[Prompt],
    predictions: list[Prediction],
    batch_rows: list[int],
    card: RunCard,
) -> pa.Table:
    """The chunk's table: the rows' own columns and what was predicted, in row order."""
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
        "prompt_tokens": pa.array([len(prompt.ids) for prompt in prompts], pa.int32()),
        "truncated": pa.array([prompt.truncated for prompt in prompts], pa.bool_()),
        "batch_rows": pa.array(batch_rows, pa.int32()),
    }
    if text:
        columns["prediction"] = pa.array([made.text for made in predictions], pa.string())
    else:
        ids = [made.ids for made in predictions]
        columns["prediction_ids"] = pa.array(ids, pa.list_(pa.int32()))
    columns |= {name: rows.column(name) for name in card.keep}
    return pa.table({name: columns[name] for name in schema.names}, schema=schema).combine_chunks()
