"""A file of JSON objects, one a line; blank lines are skipped.

Of a key that stands twice in one object the last value counts, as with every reader of JSON in
Python; to refuse it would make parsing 1.4 to 2 times as long where lines are short (measured).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import DataError
from pipeline.prepare.rows import Row, RowSource, decode_line


def open_jsonl(path: Path, where: str | None = None) -> RowSource:
    """The data set in the file of JSON lines at ``path``, which messages call ``where``."""
    name = where or str(path)
    return RowSource(path, name, lambda: _rows(path, name))


def _rows(path: Path, where: str) -> Iterator[tuple[int, Row]]:
    with path.open("rb") as handle:  # lines end at \n alone, not at U+2028 as str.splitlines has it
        for line, content in enumerate(handle, 1):
            text = decode_line(where, line, content)
            if text.strip():
                yield line, _object(where, line, text)


def _object(where: str, line: int, text: str) -> Row:
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        hint = "; the file is to hold one JSON object a line (jq -c '.[]' makes it of an array)"
        raise DataError(
            f"{where} line {line} is not JSON: {error.msg} at character {error.pos}"
            + (hint if text.lstrip().startswith(("[", "{")) and line == 1 else "")
        ) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
        raise DataError(f"{where} line {line} cannot be read: {error}") from None
    if not isinstance(row, dict):
        hint = " (jq -c '.[]' makes lines of an array)" if isinstance(row, list) else ""
        raise DataError(
            f"{where} line {line}: expected a JSON object, got {type(row).__name__}{hint}"
        )
    return row
