"""Statistics that were computed before, as Parquet files by what they depend on.

    <chunk: 32 hex digits of its sha256>/<key: 32>-<file: 16 of its sha256>.parquet

The key covers all but the chunk; who asks makes it (``keys.make_keys``). An entry that is
truncated or altered does not have the hash in its name and is not there. Entries are written aside
and renamed, so that any number of processes may share a cache; nothing is flushed to the disk,
since whatever a crash leaves is noticed. After a run, entries that no run used for the longest time
are removed until all fit into ``LIMIT_BYTES``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import atomic
from pipeline.errors import ScoresError
from pipeline.store.chunk import file_sha256

LIMIT_BYTES = 1 << 30
# Temporary files of this age were left by a process that was killed.
_STALE_S = 3600
_DIGITS = 32
_FILE_DIGITS = 16


class Cache:
    """The cache in ``folder``, which need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, chunk_sha256: str, key: str, schema: pa.Schema) -> pq.ParquetFile | None:
        """The entry, open and checked against its hash; None where there is none of ``schema``."""
        for path in self._chunk_folder(chunk_sha256).glob(f"{key[:_DIGITS]}-*.parquet"):
            with suppress(OSError, pa.ArrowException):
                named = path.stem.partition("-")[2]
                if file_sha256(path)[:_FILE_DIGITS] != named:
                    continue
                file = pq.ParquetFile(path)
                if file.schema_arrow.equals(schema):
                    os.utime(path)
                    return file
        return None

    def writer(self, chunk_sha256: str, key: str, schema: pa.Schema) -> EntryWriter:
        """A writer of the entry."""
        return EntryWriter(self._chunk_folder(chunk_sha256) / key[:_DIGITS], schema)

    def prune(self, started: float, limit_bytes: int = LIMIT_BYTES) -> None:
        """Remove what was used longest ago until the rest fits.

        Args:
            started: time of the beginning of this run; what was used since stays.
            limit_bytes: of all entries together.
        """
        entries = sorted(self._entries(), key=lambda entry: entry[1].st_mtime, reverse=True)
        held = 0
        for path, status in entries:
            held += status.st_size
            old = status.st_mtime < started
            is_temporary = atomic.TEMPORARY_MARK in path.name
            stale = is_temporary and status.st_mtime < time.time() - _STALE_S
            if stale or (old and held > limit_bytes and not is_temporary):
                path.unlink(missing_ok=True)
                with suppress(OSError):  # not empty, or gone
                    path.parent.rmdir()

    def _chunk_folder(self, chunk_sha256: str) -> Path:
        return self.folder / chunk_sha256[:_DIGITS]

    def _entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.folder.glob("*/*.parquet*"):
            with suppress(FileNotFoundError):  # another run prunes, too
                yield path, path.stat()


class EntryWriter:
    """Writes one entry, a row group at a time; it is there after ``commit``.

    Raises:
        ScoresError: the cache cannot be written, here and in the methods.
    """

    def __init__(self, stem: Path, schema: pa.Schema) -> None:
        self._stem = stem
        self._temporary = atomic.temporary_path(stem.with_suffix(".parquet"))
        with self._writing():
            while True:
                stem.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileNotFoundError):  # pruned by another process in between
                    self._writer = pq.ParquetWriter(self._temporary, schema, compression="zstd")
                    break

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        with self._writing():
            self._writer.write_table(table)

    def commit(self) -> None:
        """Give the entry its name."""
        with self._writing():
            self._writer.close()
            digest = file_sha256(self._temporary)[:_FILE_DIGITS]
            os.replace(self._temporary, self._stem.with_name(f"{self._stem.name}-{digest}.parquet"))

    def discard(self) -> None:
        """Forget the entry; nothing happens after ``commit``."""
        with suppress(OSError):
            self._writer.close()
        self._temporary.unlink(missing_ok=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ScoresError(
                f"the cache {self._stem.parent} cannot be written: {error}; name another folder "
                "with --cache, or score with --no-cache"
            ) from error
