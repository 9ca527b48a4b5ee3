"""One thing that may be in the cache: found there, or written on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.score.cache import Cache, EntryWriter


@dataclass(frozen=True)
class Entry:
    """Of one chunk; neither found nor to be written where there is no cache.

    Attributes:
        file: it, where it was found.
        writer: of it, where it was not.
    """

    file: pq.ParquetFile | None = None
    writer: EntryWriter | None = None

    @classmethod
    def open(
        cls, cache: Cache, sha256: str, key: str | None, schema: pa.Schema, group_rows: list[int]
    ) -> Entry:
        """Look it up.

        Args:
            cache: where.
            sha256: of the chunk.
            key: of the entry; None where it cannot be cached.
            schema: of its columns.
            group_rows: rows of each of its row groups.
        """
        if key is None:
            return cls()
        file = cache.find(sha256, key, schema)
        if file is not None:
            metadata = file.metadata
            groups = range(metadata.num_row_groups)
            if [metadata.row_group(group).num_rows for group in groups] == group_rows:
                return cls(file=file)
        return cls(writer=cache.writer(sha256, key, schema))

    @property
    def known(self) -> bool:
        """Whether it was found."""
        return self.file is not None

    def read(self, group: int) -> pa.Table:
        """A row group of an entry that is known."""
        assert self.file is not None
        return self.file.read_row_group(group, use_threads=False)

    def write(self, table: Callable[[], pa.Table]) -> None:
        """Add a row group; ``table`` is made only where there is something to write to."""
        if self.writer is not None:
            self.writer.write(table())

    def commit(self) -> None:
        """Keep what was written."""
        if self.writer is not None:
            self.writer.commit()

    def discard(self) -> None:
        """Forget what was not kept."""
        if self.writer is not None:
            self.writer.discard()
