"""``examples.parquet`` as predict reads it: a slice of rows at a time, by row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import DataError
from pipeline.schema import EXAMPLE_COLUMNS, SCHEMA_VERSION, read_metadata

_REMEDY = "run `twophase prepare` (or `dvc repro prepare`)"


class Examples:
    """The prepared data set at ``path``.

    Attributes:
        schema: Arrow schema of the file.
        rows: number of rows.
        inputs: names of the columns that prompts are made of.
        keep: names of the columns carried through to the scores.

    Raises:
        DataError: no such file, not made by prepare, or no rows.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = pq.ParquetFile(path)
            self.schema: pa.Schema = self._file.schema_arrow
        except FileNotFoundError:
            raise DataError(f"{path}: no such file; {_REMEDY}") from None
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise DataError(f"{path} cannot be read ({error}); {_REMEDY} again") from None
        entries = read_metadata(self.schema) or {}
        if tuple(self.schema.names[:3]) != EXAMPLE_COLUMNS or (
            entries.get("schema_version") != SCHEMA_VERSION
        ):
            raise DataError(f"{path} was not made by this version of prepare; {_REMEDY} again")
        self.inputs: tuple[str, ...] = tuple(entries["inputs"])
        self.keep: tuple[str, ...] = tuple(entries["keep"])
        self.rows: int = self._file.metadata.num_rows
        if self.rows == 0:
            raise DataError(f"{path} has no rows; check the `prepare` section and prepare again")
        self._starts = [0]
        for group in range(self._file.num_row_groups):
            self._starts.append(self._starts[-1] + self._file.metadata.row_group(group).num_rows)

    def read(self, start: int, stop: int) -> pa.Table:
        """Rows ``start`` to ``stop`` (exclusive), reading only the row groups they lie in."""
        groups = [
            group
            for group in range(self._file.num_row_groups)
            if self._starts[group] < stop and self._starts[group + 1] > start
        ]
        return self._read(groups, None).slice(start - self._starts[groups[0]], stop - start)

    def columns(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Those columns of all rows, a row group at a time."""
        for group in range(self._file.num_row_groups):
            yield self._read([group], list(names))

    def _read(self, groups: list[int], names: list[str] | None) -> pa.Table:
        try:
            return self._file.read_row_groups(groups, columns=names)
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise DataError(f"{self.path} is damaged ({error}); {_REMEDY} again") from None
