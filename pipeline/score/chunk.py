"""Some chunks → their files in ``scores/``, and one tally of them all.

Runs in this process or in a worker. It gets paths and settings and returns sums: neither texts nor
statistics travel between processes, and what is held is one row group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import PredictionSetError
from pipeline.schema import with_metadata
from pipeline.score.buffers import from_numpy, one_array
from pipeline.score.decode import Decoder, TokenizerFile, load_decoder
from pipeline.score.interval import weights
from pipeline.score.keys import CacheKeys
from pipeline.score.metrics import NamedMetric
from pipeline.score.metrics.base import Floats, Metric
from pipeline.score.statistics import ChunkStatistics, blocks
from pipeline.score.tally import Tally
from pipeline.store.card import RunCard
from pipeline.store.chunk import ChunkReader, chunk_name, hash_chunk


@dataclass(frozen=True)
class Settings:
    """What all chunks of a run share.

    Attributes:
        predictions: folder of the prediction set.
        card: its run card.
        tokenizer: to decode with; None for a set of texts.
        metrics: what to compute.
        replicates: of the bootstrap; 0 where no interval is wanted.
        seed: of the bootstrap.
        output: folder for the scores of each example.
        by: kept columns whose values make groups.
        cache: where statistics are remembered; None for nowhere.
    """

    predictions: Path
    card: RunCard
    tokenizer: TokenizerFile | None
    metrics: tuple[NamedMetric, ...]
    replicates: int
    seed: int
    output: Path
    by: tuple[str, ...] = ()
    cache: CacheKeys | None = None

    @property
    def plain_metrics(self) -> tuple[Metric, ...]:
        """The metrics without their names."""
        return tuple(named.metric for named in self.metrics)


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
    path = settings.predictions / chunk_name(chunk)
    if sha256 is None and settings.cache is not None:
        sha256 = hash_chunk(path)
    reader = ChunkReader(path, settings.card, chunk, sha256)
    schema = _scores_schema(settings, reader.schema)
    copied = ("row", "id", "finish_reason", "truncated", *settings.card.keep)
    with (
        ChunkStatistics(
            reader, sha256, settings.plain_metrics, partial(_decoder, settings), settings.cache
        ) as statistics,
        pq.ParquetWriter(
            settings.output / chunk_name(chunk),
            schema,
            compression="zstd",
            write_page_checksum=True,
        ) as writer,
    ):
        for table in reader.tables(copied if statistics.complete else None):
            matrices = statistics.read(table)
            columns = _add_rows(settings, table, matrices, tally)
            writer.write_table(_scores_table(schema, table, columns))
        tally.counts.merge(statistics.counts)


def _decoder(settings: Settings) -> Decoder | None:
    if settings.tokenizer is None:
        return None
    return load_decoder(settings.tokenizer, settings.card.decode)


def _add_rows(
    settings: Settings, table: pa.Table, matrices: list[Floats], tally: Tally
) -> list[Floats]:
    """Add a row group to ``tally``; return its columns as ``_score_fields`` lists them."""
    examples = [
        metric.example_scores(matrix)
        for metric, matrix in zip(settings.plain_metrics, matrices, strict=True)
    ]
    start = 0
    for block in blocks(table):
        rows = slice(start, start + len(block))
        start += len(block)
        tally.add(
            block,
            [matrix[rows] for matrix in matrices],
            [{name: scores[rows] for name, scores in scored.items()} for scored in examples],
            weights(settings.seed, block.column("row")[0].as_py(), len(block), settings.replicates),
        )
    columns: list[Floats] = []
    for matrix, scored in zip(matrices, examples, strict=True):
        columns += [*matrix.T, *scored.values()]
    return columns


def _score_fields(metrics: tuple[NamedMetric, ...]) -> list[pa.Field]:
    fields = []
    for named in metrics:
        fields += [
            pa.field(column.name, pa.int64() if column.integer else pa.float64(), nullable=False)
            for column in named.columns
        ]
        fields += [pa.field(name, pa.float64()) for name in named.headline]
    return fields


def _scores_schema(settings: Settings, chunk: pa.Schema) -> pa.Schema:
    copied = [chunk.field(name) for name in ("row", "id", "finish_reason", *settings.card.keep)]
    schema = pa.schema([*copied, *_score_fields(settings.metrics)])
    return with_metadata(schema, {})


def _scores_table(schema: pa.Schema, chunk: pa.Table, columns: list[Floats]) -> pa.Table:
    copied = [one_array(chunk.column(name)) for name in schema.names[: len(schema) - len(columns)]]
    arrays = [
        from_numpy(values.astype(np.int64))
        if field.type == pa.int64()
        else from_numpy(values, ~np.isnan(values))
        for field, values in zip(list(schema)[len(copied) :], columns, strict=True)
    ]
    return pa.Table.from_arrays([*copied, *arrays], schema=schema)
