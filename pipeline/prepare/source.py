"""What a data set is to the rest of prepare: rows in batches, each carried column of one type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from pipeline.prepare.roles import Wanted

# Rows converted at a time, and rows of a row group in examples.parquet.
BATCH_ROWS = 1000


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a data set.

    Attributes:
        start: number of the first row.
        rows: number of rows.
        texts: id and reference columns, as Python values.
        carried: input and kept columns.
        numbers: of the rows, where they do not follow each other because they were chosen.
    """

    start: int
    rows: int
    texts: Mapping[str, list[Any]]
    carried: Mapping[str, pa.Array]
    numbers: list[int] | None = None

    def take(self, rows: list[int]) -> Batch:
        """The rows with these numbers in the data set (``start`` is then the first of them)."""
        if len(rows) == self.rows:
            return self
        places = [row - self.start for row in rows]
        indices = pa.array(places, pa.int64())
        return Batch(
            rows[0],
            len(rows),
            {name: [values[place] for place in places] for name, values in self.texts.items()},
            {name: array.take(indices) for name, array in self.carried.items()},
        )


@dataclass(frozen=True)
class Reading:
    """A data set opened for some columns and at most so many rows.

    Attributes:
        rows: how many rows ``batches`` will yield.
        fields: the carried columns, in order.
        batches: the rows, in order; may be iterated once.
    """

    rows: int
    fields: tuple[pa.Field, ...]
    batches: Iterator[Batch]


class Source(Protocol):
    """A data set.

    Attributes:
        where: how messages name it.
        path: the person's file or folder; None where it came from elsewhere.
        note: what it was, for ``data/source`` where there is no path.
    """

    @property
    def where(self) -> str: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def note(self) -> Mapping[str, Any]: ...

    def read(self, roles: Wanted, stop: int | None) -> Reading:
        """Read the columns that ``roles`` wants in rows 0 to ``stop`` (exclusive; None is all).

        Raises:
            DataError: a column that is not there, or a file that cannot be read.
        """
