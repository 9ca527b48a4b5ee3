"""A data set of the hub that is not downloaded: rows as they come, of a number nobody knows.

The chosen rows wait in a ``Spool``. Without a seed the stream is left at the last of them. With
one it is read to its end, once: the sample is that of ``sample``, kept up to date on the way, so
RAM holds ``limit`` row numbers and the disk the rows that were in the sample at some time, about
``limit`` × (1 + ln(rows / limit)) of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.errors import DataError, first_line
from pipeline.prepare.arrow import batch_of
from pipeline.prepare.roles import Wanted, check_columns
from pipeline.prepare.sample import Sampler
from pipeline.prepare.source import BATCH_ROWS, Batch, Reading
from pipeline.prepare.spool import Spool

_NUMBER = "\0number"  # a name that no column has


@dataclass(frozen=True)
class StreamSource:
    """A stream of tables.

    Attributes:
        where: how messages name it.
        tables: begins the stream; yields tables of all columns, some rows at a time.
        failures: what it raises when it cannot go on.
        scratch: folder for the rows that wait; the caller removes it.
        note: see ``Source``.
    """

    where: str
    tables: Callable[[], Iterator[pa.Table]]
    failures: tuple[type[Exception], ...]
    scratch: Path
    note: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None

    def read(self, roles: Wanted, stop: int | None) -> Reading:
        """Rows 0 to ``stop``; see ``Source``."""
        spool = Spool(self.scratch)
        for start, rows in self._rows(roles):
            wanted = rows if stop is None else rows.slice(0, stop - start)
            self._keep(spool, wanted, start)
            if stop is not None and start + rows.num_rows >= stop:
                break
        return self._reading(spool, roles, None)

    def sample(self, roles: Wanted, limit: int, seed: int) -> tuple[Reading, list[int]]:
        """A sample of ``limit`` rows, and their numbers in the data set."""
        spool, sampler = Spool(self.scratch), Sampler(limit, seed)
        for start, rows in self._rows(roles):
            offered = [place for place in range(rows.num_rows) if sampler.offer(start + place)]
            if offered:
                taken = rows.take(pa.array(offered, pa.int64()))
                numbers = pa.array([start + place for place in offered], pa.int64())
                self._keep(spool, taken.append_column(_NUMBER, numbers), start)
        numbers = sampler.rows()
        return self._reading(spool, roles, numbers), numbers

    def _rows(self, roles: Wanted) -> Iterator[tuple[int, pa.Table]]:
        """Number of the first row, and at most ``BATCH_ROWS`` rows of the needed columns."""
        start = 0
        try:
            for table in self.tables():
                if start == 0 and table.num_rows:
                    check_columns(self.where, roles, table.schema.names)
                there = [name for name in roles.needed if name in table.schema.names]
                table = table.select(there)
                for place in range(0, table.num_rows, BATCH_ROWS):
                    rows = table.slice(place, BATCH_ROWS)
                    yield start, rows
                    start += rows.num_rows
        except self.failures as error:
            raise DataError(
                f"{self.where} broke off after row {start} ({first_line(error)}); prepare "
                "again, or without prepare.streaming"
            ) from None

    def _keep(self, spool: Spool, rows: pa.Table, start: int) -> None:
        try:
            spool.add(rows)
        except pa.ArrowException as error:
            raise DataError(
                f"{self.where} changes the type of a column from row {start} on ({error}); name "
                "other columns, or make the data set again"
            ) from None

    def _reading(self, spool: Spool, roles: Wanted, numbers: list[int] | None) -> Reading:
        if spool.schema is None:
            return Reading(0, (), iter(()))
        fields = tuple(pa.field(name, spool.schema.field(name).type) for name in roles.carried)
        rows = spool.rows if numbers is None else len(numbers)
        return Reading(rows, fields, _batches(spool, roles, numbers))


def _batches(spool: Spool, roles: Wanted, numbers: list[int] | None) -> Iterator[Batch]:
    start = 0
    for table in spool.tables():
        if numbers is None:
            yield batch_of(start, table, roles)
            start += table.num_rows
            continue
        offered = table.column(_NUMBER).to_numpy()
        chosen = np.isin(offered, numbers, assume_unique=True)
        if chosen.any():
            batch = batch_of(int(offered[chosen][0]), table.filter(pa.array(chosen)), roles)
            yield dataclasses.replace(batch, numbers=offered[chosen].tolist())
