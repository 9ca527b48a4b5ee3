"""Data sets that are files of rows without column types: JSON lines and CSV.

Such a file is read twice: once for the number of rows and the types of the carried columns (see
``kinds``), once for the rows themselves, so that memory does not grow with the file and no type
depends on where a batch ends. Nothing beyond the rows that are wanted is parsed.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.errors import DataError, shown
from pipeline.prepare.kinds import Kinds, column_array
from pipeline.prepare.roles import Wanted, check_columns
from pipeline.prepare.source import BATCH_ROWS, Batch, Reading

Row = Mapping[str, Any]


@dataclass(frozen=True)
class RowSource:
    """A file of rows.

    Attributes:
        path: the file.
        where: how messages name it.
        rows: yields (line, row); a column that the row lacks is null.
        missing_because: of the columns there are, why a wanted one may not be among them.
        note: see ``Source``.
    """

    path: Path
    where: str
    rows: Callable[[], Iterator[tuple[int, Row]]]
    missing_because: Callable[[Sequence[str]], str | None] = lambda columns: None
    note: Mapping[str, Any] = field(default_factory=dict)

    def read(self, roles: Wanted, stop: int | None) -> Reading:
        kinds = {name: Kinds() for name in roles.carried}
        seen: dict[str, None] = {}
        count = 0
        for line, row in islice(self.rows(), stop):
            count += 1
            if not row.keys() <= seen.keys():
                seen.update(dict.fromkeys(row))
            for name, kind in kinds.items():
                try:
                    kind.add(row.get(name))
                except ValueError as error:
                    raise DataError(
                        f"{self.where} line {line}: the column {shown(name)} holds {error}"
                    ) from None
        if count:
            reason = self.missing_because(tuple(seen))
            check_columns(self.where, roles, tuple(seen), reason)
        types = {name: kind.type() for name, kind in kinds.items()}
        fields = tuple(pa.field(name, type_) for name, type_ in types.items())
        return Reading(count, fields, self._batches(roles, types, count))

    def _batches(
        self, roles: Wanted, types: Mapping[str, pa.DataType], stop: int
    ) -> Iterator[Batch]:
        rows = (row for _, row in islice(self.rows(), stop))
        for start in range(0, stop, BATCH_ROWS):
            batch = list(islice(rows, BATCH_ROWS))
            yield Batch(
                start,
                len(batch),
                {name: [row.get(name) for row in batch] for name in roles.texts},
                {
                    name: column_array([row.get(name) for row in batch], type_)
                    for name, type_ in types.items()
                },
            )


def decode_line(where: str, line: int, content: bytes) -> str:
    """One line of a file as text; a byte order mark at its beginning is dropped.

    Raises:
        DataError: not UTF-8; names line and byte.
    """
    if line == 1:
        content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where} line {line} is not UTF-8 (byte 0x{content[error.start]:02x} at position "
            f"{error.start}); convert the file, for example with iconv -t UTF-8"
        ) from None
