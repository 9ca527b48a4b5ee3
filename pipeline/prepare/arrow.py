"""Data sets that have Arrow types of their own, which carried columns keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.errors import DataError
from pipeline.prepare.roles import Wanted, check_columns
from pipeline.prepare.source import BATCH_ROWS, Batch, Reading


@dataclass(frozen=True)
class ArrowSource:
    """A data set of known schema and length.

    Attributes:
        where: how messages name it.
        schema: all its columns.
        total_rows: all its rows.
        iterate: yields tables or record batches of the named columns, in order.
        path: see ``Source``.
        note: see ``Source``.
    """

    where: str
    schema: pa.Schema
    total_rows: int
    iterate: Callable[[Sequence[str]], Iterator[pa.Table | pa.RecordBatch]]
    path: Path | None = None
    note: Mapping[str, Any] = field(default_factory=dict)

    def read(self, roles: Wanted, stop: int | None) -> Reading:
        check_columns(self.where, roles, self.schema.names)
        rows = self.total_rows if stop is None else min(stop, self.total_rows)
        fields = tuple(pa.field(name, self.schema.field(name).type) for name in roles.carried)
        return Reading(rows, fields, self._batches(roles, rows))

    def _batches(self, roles: Wanted, stop: int) -> Iterator[Batch]:
        start = 0
        try:
            for part in self.iterate(roles.needed):
                for place in range(0, part.num_rows, BATCH_ROWS):
                    rows = part.slice(place, min(BATCH_ROWS, stop - start))
                    if rows.num_rows == 0:
                        return
                    yield batch_of(start, rows, roles)
                    start += rows.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            first_line = str(error).split("\n")[0]
            raise DataError(
                f"{self.where} cannot be read from row {start} on ({first_line}); make it again"
            ) from None


def batch_of(start: int, rows: pa.Table | pa.RecordBatch, roles: Wanted) -> Batch:
    """``rows`` as a batch, of which the first has the number ``start`` in the data set."""
    rows.validate(full=True)  # a Parquet file may hold strings that are not UTF-8
    return Batch(
        start,
        rows.num_rows,
        {name: rows.column(name).to_pylist() for name in roles.texts},
        {name: _one_array(rows.column(name)) for name in roles.carried},
    )


def _one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
