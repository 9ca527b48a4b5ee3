"""CSV, and TSV, with a header; quoted as in RFC 4180, so that a text may hold line breaks.

CSV has no types: every column is text, ``007`` stays ``007``. Nor can it tell an empty text from a
missing one: an empty cell is null, which an input, an id or an only reference must not be.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.errors import DataError, shown
from pipeline.prepare.rows import Row, RowSource, decode_line

_LARGEST_CELL_BYTES = 2**31 - 1  # the module's default of 131,072 is less than a long document


def open_delimited(path: Path, delimiter: str, where: str | None = None) -> RowSource:
    """The data set in the CSV file at ``path``, which messages call ``where``."""
    name = where or str(path)
    return RowSource(
        path,
        name,
        lambda: _rows(path, delimiter, name),
        lambda columns: _separator_fault(columns, delimiter),
    )


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
                    fault = _separator_fault(header, delimiter)
                    if fault is not None:
                        raise DataError(f"{where}: {fault}")
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


def _separator_fault(header: Sequence[str], delimiter: str) -> str | None:
    """What to do where the one column's name looks like several with another separator."""
    if len(header) != 1:
        return None
    found = next((other for other in ";\t," if other in header[0] and other != delimiter), None)
    if found is None:
        return None
    name, remedy = {
        ";": ("';'", "save the file with commas"),
        "\t": ("a tab", "call the file .tsv, or save it with commas"),
        ",": ("','", "call the file .csv, or save it with tabs"),
    }[found]
    return (
        f"its header is one cell, {shown(header[0])}, so the separator seems to be {name}; {remedy}"
    )


def _check_header(where: str, header: list[str]) -> None:
    for name in header:
        if header.count(name) > 1:
            raise DataError(f"{where} has two columns {shown(name)}; rename one of them")
