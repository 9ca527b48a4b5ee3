"""Some chunks → their files in ``scores/``, and one tally of them all.

Runs in this process or in a worker. It gets paths and settings and returns sums: neither texts nor
statistics travel between processes, and what is held is one row group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline.errors import PredictionSetError
from pipeline.schema import with_metadata
from pipeline.score.buffers import from_numpy, one_array
from pipeline.score.columns import read_columns, statistics_of
from pipeline.score.decode import Decoder, TokenizerFile, load_decoder
from pipeline.score.interval import BLOCK_ROWS, weights
from pipeline.score.metrics import NamedMetric
from pipeline.score.normalize import Normalizer
from pipeline.score.references import REFERENCES_HASH, hash_references
from pipeline.score.tally import Tally
from pipeline.score.texts import read_texts
from pipeline.store.card import RunCard
from pipeline.store.chunk import ChunkReader, chunk_name


@dataclass(frozen=True)
class Settings:
    """What all chunks of a run share.

    Attributes:
        predictions: folder of the prediction set.
        card: its run card, with the decode options of this run.
        tokenizer: to decode with; None for a set of texts.
        normalizer: what every text goes through.
        metrics: what to compute.
        replicates: of the bootstrap; 0 where no interval is wanted.
        seed: of the bootstrap.
        output: folder for the scores of each example.
    """

    predictions: Path
    card: RunCard
    tokenizer: TokenizerFile | None
    normalizer: Normalizer
    metrics: tuple[NamedMetric, ...]
    replicates: int
    seed: int
    output: Path


@dataclass(frozen=True)
class Faults:
    """Chunks that could not be scored: number -> error."""

    errors: dict[int, PredictionSetError]


def score_chunks(settings: Settings, chunks: dict[int, str | None]) -> Tally | Faults:
    """Score ``chunks`` (number -> expected sha256, or None) and write their files.

    Errors of single chunks are collected, so that all of them can be named at once.
    """
    tally = Tally.empty(settings.metrics, settings.replicates)
    errors: dict[int, PredictionSetError] = {}
    for chunk, sha256 in chunks.items():
        try:
            _score_chunk(settings, chunk, sha256, tally)
        except PredictionSetError as error:
            errors[chunk] = error
    return Faults(errors) if errors else tally


def _score_chunk(settings: Settings, chunk: int, sha256: str | None, tally: Tally) -> None:
    path = settings.predictions / chunk_name(chunk)
    reader = ChunkReader(path, settings.card, chunk, sha256)
    decoder = load_decoder(settings.tokenizer, settings.card.decode) if settings.tokenizer else None
    schema = _scores_schema(settings, reader.schema)
    with pq.ParquetWriter(
        settings.output / chunk_name(chunk), schema, compression="zstd", write_page_checksum=True
    ) as writer:
        for table in filter(len, reader.tables()):  # other writers leave groups without rows
            scored = [
                _score_block(settings, block, path, decoder, tally) for block in _blocks(table)
            ]
            columns = [np.concatenate(parts) for parts in zip(*scored, strict=True)]
            writer.write_table(_scores_table(schema, table, columns))


def _blocks(table: pa.Table) -> Iterator[pa.Table]:
    """``table`` cut at multiples of ``BLOCK_ROWS`` of the row number."""
    start = 0
    while start < len(table):
        row = table.column("row")[start].as_py()
        stop = start + BLOCK_ROWS - row % BLOCK_ROWS
        yield table.slice(start, stop - start)
        start = stop


def _score_block(
    settings: Settings, block: pa.Table, path: Path, decoder: Decoder | None, tally: Tally
) -> list[NDArray[Any]]:
    """Add a block to ``tally``; return its columns as ``_score_fields`` lists them."""
    texts = read_texts(block, path, decoder, settings.normalizer)
    needed = read_columns(settings.metrics, block, path)
    first_row = block.column("row")[0].as_py()
    drawn = weights(settings.seed, first_row, len(block), settings.replicates)
    columns: list[NDArray[Any]] = []
    for named, metric_tally in zip(settings.metrics, tally.metrics, strict=True):
        statistics = statistics_of(named.metric, texts.predictions, texts.references, needed)
        examples = named.metric.example_scores(statistics)
        metric_tally.add(statistics, examples, drawn)
        columns += [*statistics.T, *examples.values()]
    columns.append(hash_references(texts.references))
    tally.rows += len(block)
    tally.empty_predictions += sum(1 for text in texts.predictions if not text.strip())
    tally.empty_references += texts.empty_references
    tally.dropped_references += texts.dropped_references
    tally.out_of_vocabulary_ids += texts.unknown_ids
    tally.truncated += block.column("truncated").to_pylist().count(True)
    tally.finish_reasons.update(block.column("finish_reason").to_pylist())
    tally.references_per_row.update(map(len, texts.references))
    return columns


def _score_fields(metrics: tuple[NamedMetric, ...]) -> list[pa.Field]:
    fields = []
    for named in metrics:
        fields += [
            pa.field(column.name, pa.int64() if column.integer else pa.float64(), nullable=False)
            for column in named.columns
        ]
        fields += [pa.field(name, pa.float64()) for name in named.headline]
    return [*fields, pa.field(REFERENCES_HASH, pa.int64(), nullable=False)]


def _scores_schema(settings: Settings, chunk: pa.Schema) -> pa.Schema:
    copied = [chunk.field(name) for name in ("row", "id", "finish_reason", *settings.card.keep)]
    schema = pa.schema([*copied, *_score_fields(settings.metrics)])
    return with_metadata(schema, {})


def _scores_table(schema: pa.Schema, chunk: pa.Table, columns: list[NDArray[Any]]) -> pa.Table:
    copied = [one_array(chunk.column(name)) for name in schema.names[: len(schema) - len(columns)]]
    arrays = [
        from_numpy(values.astype(np.int64))
        if field.type == pa.int64()
        else from_numpy(values, ~np.isnan(values))
        for field, values in zip(list(schema)[len(copied) :], columns, strict=True)
    ]
    return pa.Table.from_arrays([*copied, *arrays], schema=schema)
