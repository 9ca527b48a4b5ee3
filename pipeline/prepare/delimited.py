"""CSV, and TSV, with a header; quoted as in RFC 4180, so that a text may hold line breaks.

CSV has no types: every column is text, ``007`` stays ``007``. Nor can it tell an empty text from a
missing one: an empty cell is null, which an input, a reference or an id must not be.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import DataError
from pipeline.prepare.rows import Row, RowSource, decode_line

_LARGEST_CELL_BYTES = 2**31 - 1  # the module's default of 131,072 is less than a long document


def open_delimited(path: Path, delimiter: str, where: str | None = None) -> RowSource:
    """The data set in the CSV file at ``path``, which messages call ``where``."""
    name = where or str(path)
    return RowSource(path, name, lambda: _rows(path, delimiter, name))


def _rows(path: Path, delimiter: str, where: str) -> Iterator[tuple[int, Row]]:
    csv.field_size_limit(_LARGEST_CELL_BYTES)
    with path.open("rb") as handle:
        lines = (decode_line(where, line, content) for line, content in enumerate(handle, 1))
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                return
            _check_header(where, header)
            for cells in reader:
                if not cells:
                    continue  # a blank line
                if len(cells) != len(header):
                    raise DataError(
                        f"{where} line {reader.line_num}: {len(cells)} cells where the header has "
                        f"{len(header)}; a text with a comma or a line break wants quotes"
                    )
                yield (
                    reader.line_num,
                    {name: cell or None for name, cell in zip(header, cells, strict=True)},
                )
        except csv.Error as error:
            raise DataError(f"{where} line {reader.line_num} is not CSV: {error}") from None


def _check_header(where: str, header: list[str]) -> None:
    for name in header:
        if header.count(name) > 1:
            raise DataError(f"{where} has two columns '{name}'; rename one of them")
