"""One chunk: Parquet with zstd pages, page checksums, and a footer that says where it belongs.

Page checksums do not cover the footer and do not catch every flip (160 of 8,298 byte
flips changed data in silence), so a reader that knows the sha256 of the file checks that too, and
always the schema, the footer entries and the row numbers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import atomic
from pipeline.errors import DamagedChunkError, FingerprintError, first_line
from pipeline.schema import SCHEMA_VERSION, chunk_schema, read_metadata, with_metadata
from pipeline.store.card import RunCard
from pipeline.store.place import Place, is_url

# Row groups are what a reader holds at a time.
ROW_GROUP_ROWS = 16_384
_NAME = re.compile(r"chunk-(\d{5,})\.parquet")


def chunk_name(chunk: int) -> str:
    """``chunk-00000.parquet`` for chunk 0."""
    return f"chunk-{chunk:05d}.parquet"


def chunk_index(name: str) -> int | None:
    """The number in a chunk's file name, or None when ``name`` is not a chunk."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    chunk = int(match[1])
    return chunk if chunk_name(chunk) == name else None


def file_sha256(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def open_chunk(path: Path, schema: pa.Schema, card: RunCard, chunk: int) -> pq.ParquetWriter:
    """A writer of ``chunk`` to ``path``, for rows that come a table at a time, in order."""
    metadata = {"fingerprint": card.fingerprint, "chunk": chunk}
    return pq.ParquetWriter(
        path, with_metadata(schema, metadata), compression="zstd", write_page_checksum=True
    )


def write_chunk(path: Path, table: pa.Table, card: RunCard, chunk: int) -> None:
    """Write ``table`` (the rows of ``chunk``, in order) to ``path``. Not atomic by itself."""
    with open_chunk(path, table.schema, card, chunk) as writer:
        writer.write_table(table.cast(writer.schema), row_group_size=ROW_GROUP_ROWS)


def write_chunk_atomically(path: Path, table: pa.Table, card: RunCard, chunk: int) -> str:
    """Write a chunk under its final name only when it is complete; return its sha256."""
    with atomic.atomic_path(path) as temporary:
        write_chunk(temporary, table, card, chunk)
        return file_sha256(temporary)


class ChunkReader:
    """A chunk, checked when it is opened, read by row group.

    Args:
        path: the file; it may be gone when the reader is made.
        card: the run card of its set.
        chunk: its number.
        sha256: the expected hash of the file, where the set is sealed.
        hashed: hash the file even where no hash is expected.
        where: what messages call it, if not ``path``.

    Attributes:
        sha256: of the file, where it was hashed.

    Raises:
        DamagedChunkError: the file is truncated or altered, or is not this chunk.
        FingerprintError: the chunk was made by another run.
    """

    def __init__(
        self,
        path: Path,
        card: RunCard,
        chunk: int,
        sha256: str | None = None,
        *,
        hashed: bool = False,
        where: str | None = None,
    ) -> None:
        self.where = where or str(path)
        self._card = card
        self._chunk = chunk
        try:
            self.sha256 = file_sha256(path) if hashed or sha256 is not None else None
            if sha256 not in (None, self.sha256):
                raise self._damaged("its sha256 is not the one in SHA256SUMS")
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
            self.schema = self._file.schema_arrow
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise self._damaged(first_line(error)) from None
        self._check()

    @classmethod
    def at(
        cls,
        place: Place,
        card: RunCard,
        chunk: int,
        sha256: str | None = None,
        *,
        hashed: bool = False,
    ) -> Self:
        """Open ``chunk`` of the set at ``place``."""
        name = chunk_name(chunk)
        where = place.at(name)
        try:
            with place.local(name, sha256) as path:
                return cls(path, card, chunk, sha256, hashed=hashed, where=where)
        except FileNotFoundError:
            raise DamagedChunkError(
                f"{where} is gone; run `twophase predict` where the model is, or copy it again"
            ) from None

    def _check(self) -> None:
        entries = read_metadata(self.schema)
        if entries is None or entries.get("schema_version") != SCHEMA_VERSION:
            raise self._damaged("its footer does not carry this schema version")
        if entries.get("fingerprint") != self._card.fingerprint:
            raise FingerprintError(
                f"{self.where} belongs to run {entries.get('fingerprint')}, the set to "
                f"{self._card.fingerprint}: two runs were mixed; remove the file and run "
                "`twophase predict` to make the right one"
            )
        if entries.get("chunk") != self._chunk:
            raise self._damaged(f"its footer says chunk {entries.get('chunk')}")
        expected = chunk_schema(text=self._card.prediction == "text", optional=self._card.optional)
        names = (*expected.names, *self._card.keep)
        if tuple(self.schema.names) != names:
            raise self._damaged(f"its columns are {self.schema.names}, expected {list(names)}")
        for field in expected:
            if self.schema.field(field.name).type != field.type:
                raise self._damaged(f"column {field.name} is {self.schema.field(field.name).type}")
        start, stop = self._card.bounds(self._chunk)
        if self._file.metadata.num_rows != stop - start:
            raise self._damaged(f"it has {self._file.metadata.num_rows} rows, not {stop - start}")

    @property
    def group_rows(self) -> list[int]:
        """Rows of each row group."""
        metadata = self._file.metadata
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows in order, a row group at a time; row numbers are checked on the way.

        Args:
            columns: which to read, ``row`` among them; None is all.
        """
        names = None if columns is None else list(columns)
        expected = self._card.bounds(self._chunk)[0]
        for group in range(self._file.num_row_groups):
            try:
                table = self._file.read_row_group(group, names, use_threads=False)
                # DLPack, since to_numpy imports pandas where it is installed.
                rows = np.from_dlpack(table.column("row").combine_chunks())
            except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
                raise self._damaged(first_line(error)) from None
            if not np.array_equal(rows, np.arange(expected, expected + len(rows))):
                raise self._damaged(f"its rows do not count on from {expected}")
            expected += len(rows)
            yield table

    def read(self) -> pa.Table:
        """All rows as one table."""
        return pa.concat_tables([self.schema.empty_table(), *self.tables()])

    def _damaged(self, why: str) -> DamagedChunkError:
        # What a machine has made it does not fetch again to compare.
        first = "remove it there and run" if is_url(self.where) else "run"
        return DamagedChunkError(
            f"{self.where} is damaged: {why}; the other chunks are not touched: {first} "
            "`twophase predict` (or `dvc repro`) where the model is to remake this one alone, "
            "or copy it again"
        )
