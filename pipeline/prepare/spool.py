"""Tables written aside while they come, read again when there are no more.

Only at its end is it known how many rows a stream has and of what type its columns are: a column
that is null in the first thousand rows is text in the next. So what was chosen waits on the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa


class Spool:
    """Tables in ``folder``, which is made, and which the caller removes.

    Attributes:
        rows: number of rows so far.
        schema: one that all tables so far can be cast to; None before the first.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: list[Path] = []
        self._writer: pa.RecordBatchFileWriter | None = None
        self._written: pa.Schema | None = None  # of the file that is being written
        self.rows = 0
        self.schema: pa.Schema | None = None

    def add(self, table: pa.Table) -> None:
        """Write ``table`` down.

        Raises:
            pa.ArrowException: a column is of a type that does not go with the earlier ones.
        """
        schema = table.schema.remove_metadata()
        if schema != self._written:
            known = [self.schema] if self.schema is not None else []
            self.schema = pa.unify_schemas([*known, schema], promote_options="permissive")
            self.close()
            self._folder.mkdir(parents=True, exist_ok=True)
            self._paths.append(self._folder / f"{len(self._paths)}.arrow")
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            self._writer = pa.ipc.new_file(str(self._paths[-1]), schema, options=options)
            self._written = schema
        assert self._writer is not None
        self._writer.write_table(table.cast(schema))
        self.rows += table.num_rows

    def close(self) -> None:
        """End the file that is being written."""
        if self._writer is not None:
            self._writer.close()
            self._writer = self._written = None

    def tables(self) -> Iterator[pa.Table]:
        """All rows in the order in which they came, in the one schema."""
        self.close()
        for path in self._paths:
            with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
                for number in range(reader.num_record_batches):
                    yield self._in_one_schema(pa.Table.from_batches([reader.get_batch(number)]))

    def _in_one_schema(self, table: pa.Table) -> pa.Table:
        assert self.schema is not None
        columns = []
        for field in self.schema:
            column = pa.nulls(table.num_rows, pa.null())
            with suppress(KeyError):
                column = table.column(field.name)
            columns.append(column.cast(field.type))
        return pa.table(columns, schema=self.schema)
