"""Examples into Parquet: zstd, row groups of about 1,000 rows, ids unique."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import DataError, shown
from pipeline.ids import IdHashes, hash_id
from pipeline.prepare.source import BATCH_ROWS


def write_examples(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write ``batches`` to ``path`` in row groups of ``BATCH_ROWS``, however they come.

    Row groups, not batches, are what predict reads at a time, so a sample of few rows per batch
    must not become a file of many tiny groups.
    """
    waiting: list[pa.RecordBatch] = []
    waiting_rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in batches:
            waiting.append(batch)
            waiting_rows += batch.num_rows
            while waiting_rows >= BATCH_ROWS:
                table = pa.Table.from_batches(waiting)
                writer.write_table(table.slice(0, BATCH_ROWS))
                waiting = table.slice(BATCH_ROWS).to_batches()
                waiting_rows -= BATCH_ROWS
        if waiting_rows:
            writer.write_table(pa.Table.from_batches(waiting))


def check_unique(
    path: Path, hashes: IdHashes, numbers: Sequence[int] | None, where: str, column: str
) -> None:
    """Check that no id in the file just written occurs twice.

    The file is read again only where two hashes are equal, which two ids may be by chance.

    Args:
        path: the file of examples.
        hashes: of all its ids.
        numbers: numbers of its rows in the data set; None where they are the same.
        where: how messages name the data set.
        column: the column that the ids came from.

    Raises:
        DataError: names the id and the first two rows that have it.
    """
    suspects = hashes.repeated()
    if not suspects:
        return
    first: dict[str, int] = {}
    row = 0
    for batch in pq.ParquetFile(path).iter_batches(columns=["id"]):
        for identifier in batch.column(0).to_pylist():
            number = row if numbers is None else numbers[row]
            if hash_id(identifier) in suspects and first.setdefault(identifier, number) != number:
                raise DataError(
                    f"{where}: rows {first[identifier]} and {number} have the same id "
                    f"{shown(identifier)} in column {shown(column)}; make ids unique, or set "
                    "prepare.id to null to number the rows"
                )
            row += 1
