"""A Parquet file, read by row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import DataError
from pipeline.prepare.arrow import ArrowSource
from pipeline.prepare.source import BATCH_ROWS


def open_parquet(path: Path, where: str | None = None) -> ArrowSource:
    """The data set in the Parquet file at ``path``, which messages call ``where``.

    Raises:
        DataError: not a Parquet file, or a damaged one.
    """
    name = where or str(path)
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        first_line = str(error).split("\n")[0]
        raise DataError(f"{name} cannot be read as Parquet ({first_line})") from None

    def iterate(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from file.iter_batches(BATCH_ROWS, columns=list(columns))

    return ArrowSource(name, file.schema_arrow, file.metadata.num_rows, iterate, path)
