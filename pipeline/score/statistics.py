"""A chunk → the statistics of its rows: computed, or from the cache.

What is cached of a chunk is one matrix per metric, and the counts of what had to be decided about
its texts. Where all of that is known, nothing is decoded, and neither predictions nor references
are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.score.buffers import from_numpy, one_array, to_numpy
from pipeline.score.cache import Cache, EntryWriter
from pipeline.score.counts import SCHEMA, Counts
from pipeline.score.decode import Decoder
from pipeline.score.interval import BLOCK_ROWS
from pipeline.score.keys import CacheKeys
from pipeline.score.metrics.base import Floats, Metric
from pipeline.score.texts import read_texts
from pipeline.store.chunk import ChunkReader


class ChunkStatistics:
    """The statistics of one chunk, row group by row group; a context, which fills the cache.

    Args:
        reader: the chunk.
        sha256: of its bytes; None where there are no ``keys``.
        metrics: what to compute.
        load_decoder: gives what decodes the ids; called only where something is to be computed.
        keys: of the cache; None for none.
    """

    def __init__(
        self,
        reader: ChunkReader,
        sha256: str | None,
        metrics: Sequence[Metric],
        load_decoder: Callable[[], Decoder | None],
        keys: CacheKeys | None,
    ) -> None:
        self._path = reader.path
        self._metrics = metrics
        self._groups = reader.group_rows
        self._group = 0
        self._known: dict[int, pq.ParquetFile] = {}
        self._writers: dict[int, EntryWriter] = {}
        self._counts_writer: EntryWriter | None = None
        self.counts = Counts()
        known_counts = None
        if keys is not None and sha256 is not None:
            cache = Cache(keys.folder)
            known_counts = cache.find(sha256, keys.counts, SCHEMA)
            for index, key in enumerate(keys.metrics):
                if key is not None:
                    self._open(cache, sha256, index, key)
            if known_counts is None:
                self._counts_writer = cache.writer(sha256, keys.counts, SCHEMA)
        self.complete = known_counts is not None and len(self._known) == len(metrics)
        if known_counts is not None and self.complete:
            self.counts = Counts.from_table(known_counts.read(use_threads=False))
        self._decoder = None if self.complete else load_decoder()

    def __enter__(self) -> ChunkStatistics:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        writers = [*self._writers.values(), *filter(None, [self._counts_writer])]
        try:
            if kind is None:
                if self._counts_writer is not None:
                    self._counts_writer.write(self.counts.to_table())
                for writer in writers:
                    writer.commit()
        finally:
            for writer in writers:
                writer.discard()

    def read(self, table: pa.Table) -> list[Floats]:
        """(rows, columns) statistics of each metric for the next row group."""
        computed = iter([] if self.complete else self._compute(table))
        matrices = [
            self._cached(index) if index in self._known else next(computed)
            for index in range(len(self._metrics))
        ]
        for index, writer in self._writers.items():
            writer.write(_to_table(self._metrics[index], matrices[index]))
        self._group += 1
        return matrices

    def _open(self, cache: Cache, sha256: str, index: int, key: str) -> None:
        schema = _schema(self._metrics[index])
        file = cache.find(sha256, key, schema)
        if file is not None and _group_rows(file) == self._groups:
            self._known[index] = file
        else:
            self._writers[index] = cache.writer(sha256, key, schema)

    def _cached(self, index: int) -> Floats:
        table = self._known[index].read_row_group(self._group, use_threads=False)
        matrix = np.empty((len(table), table.num_columns))
        for place, column in enumerate(table.columns):
            matrix[:, place] = to_numpy(one_array(column))
        return matrix

    def _compute(self, table: pa.Table) -> list[Floats]:
        """Statistics of the metrics that are not known; counts on the way."""
        missing = [metric for index, metric in enumerate(self._metrics) if index not in self._known]
        parts: list[list[Floats]] = [[] for _ in missing]
        for block in blocks(table):
            texts = read_texts(block, self._path, self._decoder)
            self.counts.merge(Counts.of(texts))
            for metric, matrices in zip(missing, parts, strict=True):
                matrices.append(metric.statistics(texts.predictions, texts.references))
        return [np.concatenate(matrices) for matrices in parts]


def blocks(table: pa.Table) -> Iterator[pa.Table]:
    """``table`` cut at multiples of ``BLOCK_ROWS`` of the row number."""
    start = 0
    while start < len(table):
        row = table.column("row")[start].as_py()
        stop = start + BLOCK_ROWS - row % BLOCK_ROWS
        yield table.slice(start, stop - start)
        start = stop


def _schema(metric: Metric) -> pa.Schema:
    return pa.schema(
        [
            pa.field(column.name, pa.int64() if column.integer else pa.float64(), nullable=False)
            for column in metric.columns
        ]
    )


def _to_table(metric: Metric, matrix: Floats) -> pa.Table:
    return pa.Table.from_arrays(
        [
            from_numpy(values.astype(np.int64) if column.integer else values)
            for column, values in zip(metric.columns, matrix.T, strict=True)
        ],
        schema=_schema(metric),
    )


def _group_rows(file: pq.ParquetFile) -> list[int]:
    metadata = file.metadata
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
