"""Some chunks → their files in ``scores/``, and one tally of them all.

Runs in this process or in a worker. It gets paths and settings and returns sums: neither texts nor
statistics travel between processes, and what is held is one row group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline.errors import PredictionSetError
from pipeline.schema import with_metadata
from pipeline.score.buffers import from_numpy, one_array
from pipeline.score.interval import weights
from pipeline.score.metrics import NamedMetric
from pipeline.score.references import REFERENCES_HASH
from pipeline.score.settings import Settings
from pipeline.score.statistics import ChunkStatistics, RowStatistics, blocks
from pipeline.score.tally import Tally
from pipeline.store.chunk import ChunkReader, chunk_name


@dataclass(frozen=True)
class Faults:
    """Chunks that could not be scored: number -> error."""

    errors: dict[int, PredictionSetError]


def score_chunks(settings: Settings, chunks: dict[int, str | None]) -> Tally | Faults:
    """Score ``chunks`` (number -> expected sha256, or None) and write their files.

    Errors of single chunks are collected, so that all of them can be named at once.
    """
    tally = Tally(settings.metrics, settings.replicates, settings.by)
    errors: dict[int, PredictionSetError] = {}
    for chunk, sha256 in chunks.items():
        try:
            _score_chunk(settings, chunk, sha256, tally)
        except PredictionSetError as error:
            errors[chunk] = error
    return Faults(errors) if errors else tally


def _score_chunk(settings: Settings, chunk: int, sha256: str | None, tally: Tally) -> None:
    hashed = settings.cache is not None
    reader = ChunkReader.at(settings.place, settings.card, chunk, sha256, hashed=hashed)
    schema = _scores_schema(settings, reader.schema)
    copied = ("row", "id", "finish_reason", "truncated", *settings.card.keep)
    with (
        ChunkStatistics(settings, reader) as statistics,
        pq.ParquetWriter(
            settings.output / chunk_name(chunk),
            schema,
            compression="zstd",
            write_page_checksum=True,
        ) as writer,
    ):
        tables = reader.tables(copied if statistics.complete else None)
        for table in filter(len, tables):  # other writers leave groups without rows
            columns = _add_rows(settings, table, statistics.read(table), tally)
            writer.write_table(_scores_table(schema, table, columns))
        tally.counts.merge(statistics.counts)


def _add_rows(
    settings: Settings, table: pa.Table, found: RowStatistics, tally: Tally
) -> list[NDArray[Any]]:
    """Add a row group to ``tally``; return its columns as ``_score_fields`` lists them."""
    examples = [
        named.metric.example_scores(matrix)
        for named, matrix in zip(settings.metrics, found.matrices, strict=True)
    ]
    start = 0
    for block in blocks(table):
        rows = slice(start, start + len(block))
        start += len(block)
        tally.add(
            block,
            [matrix[rows] for matrix in found.matrices],
            [{name: scores[rows] for name, scores in scored.items()} for scored in examples],
            weights(settings.seed, block.column("row")[0].as_py(), len(block), settings.replicates),
        )
    columns: list[NDArray[Any]] = []
    for matrix, scored in zip(found.matrices, examples, strict=True):
        columns += [*matrix.T, *scored.values()]
    return [*columns, found.references]


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
