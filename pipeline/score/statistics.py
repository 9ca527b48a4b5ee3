"""A chunk → the statistics of its rows: computed, or from the cache.

What is cached of a chunk is a matrix per metric, the hashes of its references, and the counts of
what had to be decided about its texts. Where all of that is known, nothing is decoded, and neither
predictions nor references are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.score.buffers import from_numpy, one_array, to_numpy
from pipeline.score.cache import Cache
from pipeline.score.columns import read_columns, statistics_of
from pipeline.score.counts import SCHEMA, Counts
from pipeline.score.decode import load_decoder
from pipeline.score.entry import Entry
from pipeline.score.interval import BLOCK_ROWS
from pipeline.score.metrics.base import Column, Floats
from pipeline.score.references import REFERENCES_HASH, hash_references
from pipeline.score.settings import Settings
from pipeline.score.texts import read_texts
from pipeline.store.chunk import ChunkReader

Integers = NDArray[np.int64]


class RowStatistics(NamedTuple):
    """Statistics of some rows.

    Attributes:
        matrices: of each metric, (rows, columns).
        references: (rows,) hashes of the references.
    """

    matrices: list[Floats]
    references: Integers


class _Computed(NamedTuple):
    """As ``RowStatistics``, of the metrics that are not known, by their place."""

    matrices: dict[int, Floats]
    references: Integers


class ChunkStatistics:
    """The statistics of one chunk, row group by row group; a context, which fills the cache.

    Args:
        settings: of the run.
        reader: the chunk, hashed where there is a cache.

    Attributes:
        complete: whether all is known, so that only what is copied need be read.
        counts: of the rows read so far; of all of them where ``complete``.
    """

    def __init__(self, settings: Settings, reader: ChunkReader) -> None:
        self._settings = settings
        self._where = reader.where
        self._metrics = [named.metric for named in settings.metrics]
        self._group = 0
        self.counts = Counts()
        self._of_metrics = [Entry() for _ in self._metrics]
        self._of_references = self._of_counts = Entry()
        keys = settings.cache
        if keys is not None and reader.sha256 is not None:
            groups = [rows for rows in reader.group_rows if rows]
            find = partial(Entry.open, Cache(keys.folder), reader.sha256)
            self._of_metrics = [
                find(key, _schema(metric.columns), groups)
                for key, metric in zip(keys.metrics, self._metrics, strict=True)
            ]
            self._of_references = find(keys.references, _REFERENCES, groups)
            self._of_counts = find(keys.counts, SCHEMA, [1])
        self._entries = [*self._of_metrics, self._of_references, self._of_counts]
        self.complete = all(entry.known for entry in self._entries)
        if self.complete:
            self.counts = Counts.from_table(self._of_counts.read(0))

    def __enter__(self) -> ChunkStatistics:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._of_counts.write(self.counts.to_table)
                for entry in self._entries:
                    entry.commit()
        finally:
            for entry in self._entries:
                entry.discard()

    def read(self, table: pa.Table) -> RowStatistics:
        """The statistics of the next row group."""
        computed = None if self.complete else self._compute(table)
        matrices = []
        for index, (entry, metric) in enumerate(zip(self._of_metrics, self._metrics, strict=True)):
            if computed is None or index not in computed.matrices:
                matrices.append(_to_matrix(entry.read(self._group)))
            else:
                matrices.append(computed.matrices[index])
                entry.write(partial(_to_table, metric.columns, computed.matrices[index]))
        if computed is None:
            stored = self._of_references.read(self._group).column(0)
            references: Integers = to_numpy(one_array(stored))
        else:
            references = computed.references
            self._of_references.write(partial(_hashes_to_table, references))
        self._group += 1
        return RowStatistics(matrices, references)

    def _compute(self, table: pa.Table) -> _Computed:
        """What is not known of a row group; counts on the way."""
        settings = self._settings
        missing = [index for index, entry in enumerate(self._of_metrics) if not entry.known]
        named = [settings.metrics[index] for index in missing]
        tokenizer = settings.tokenizer
        decoder = load_decoder(tokenizer, settings.card.decode) if tokenizer else None
        parts: dict[int, list[Floats]] = {index: [] for index in missing}
        hashes = []
        for block in blocks(table):
            texts = read_texts(block, self._where, decoder, settings.normalizer)
            columns = read_columns(named, block, self._where)
            self.counts.merge(Counts.of(texts))
            hashes.append(hash_references(texts.references))
            for index, matrices in parts.items():
                metric = self._metrics[index]
                matrices.append(statistics_of(metric, texts.predictions, texts.references, columns))
        found = {index: np.concatenate(matrices) for index, matrices in parts.items()}
        return _Computed(found, np.concatenate(hashes))


def is_known(settings: Settings, sha256: str | None) -> bool:
    """Whether the cache has all statistics of the chunk that has this sha256."""
    keys = settings.cache
    if keys is None or sha256 is None:
        return False
    wanted = [(keys.references, _REFERENCES), (keys.counts, SCHEMA)]
    for key, named in zip(keys.metrics, settings.metrics, strict=True):
        if key is None:
            return False
        wanted.append((key, _schema(named.metric.columns)))
    cache = Cache(keys.folder)
    return all(cache.find(sha256, key, schema) is not None for key, schema in wanted)


def blocks(table: pa.Table) -> Iterator[pa.Table]:
    """``table`` cut at multiples of ``BLOCK_ROWS`` of the row number."""
    start = 0
    while start < len(table):
        row = table.column("row")[start].as_py()
        stop = start + BLOCK_ROWS - row % BLOCK_ROWS
        yield table.slice(start, stop - start)
        start = stop


def _schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema(
        [
            pa.field(column.name, pa.int64() if column.integer else pa.float64(), nullable=False)
            for column in columns
        ]
    )


_REFERENCES = _schema([Column(REFERENCES_HASH, integer=True)])


def _hashes_to_table(hashes: Integers) -> pa.Table:
    return pa.Table.from_arrays([from_numpy(hashes)], schema=_REFERENCES)


def _to_table(columns: Sequence[Column], matrix: Floats) -> pa.Table:
    arrays: list[Any] = [
        from_numpy(values.astype(np.int64) if column.integer else values)
        for column, values in zip(columns, matrix.T, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=_schema(columns))


def _to_matrix(table: pa.Table) -> Floats:
    matrix = np.empty((len(table), table.num_columns))
    for place, column in enumerate(table.columns):
        matrix[:, place] = to_numpy(one_array(column))
    return matrix
