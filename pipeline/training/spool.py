"""Columns, batch by batch, into a prediction set of its own. What is held is one chunk.

A set appears under its name in one rename, when it is sealed. While it is written it lies beside
that name as ``.step-00000500.partial/``, and stays there where the evaluation fails; the next
evaluation of that step begins with removing it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa

from pipeline import atomic
from pipeline.errors import PredictionSetError
from pipeline.local import remove
from pipeline.store import lock
from pipeline.store.card import RUN_CARD, RunCard
from pipeline.store.chunk import chunk_name, file_sha256, write_chunk_atomically
from pipeline.store.prediction_set import SUMS, TOKENIZER_FILE, format_sums
from pipeline.store.publish import link_or_copy

# A chunk is scored at a time: 1,024 rows of 96 tokens took 384 MB as one and 13 MB so (measured).
CHUNK_ROWS = 256


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Say of what the system refuses that it is about ``target``.

    Raises:
        PredictionSetError: a full disk, a missing permission, a path that cannot be.
    """
    try:
        yield
    except OSError as error:
        raise PredictionSetError(
            f"{target} cannot be written: {error}; make room, or name another folder for the "
            "Recorder"
        ) from error


@contextmanager
def spooling(target: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``target`` when the block ends without an error.

    Raises:
        PredictionSetError: ``target`` is there and is no prediction set, or cannot be written.
        LockedStoreError: another process is at the same evaluation.
    """
    if target.exists() and not (target / RUN_CARD).exists():
        raise PredictionSetError(
            f"{target} exists and is not a prediction set; name another folder for the Recorder, "
            "or remove it"
        )
    aside = target.with_name(f".{target.name}.partial")
    with lock.hold(aside):
        new, old = aside / "set", aside / "old"
        remove(new)
        remove(old)
        new.mkdir()
        yield new
        with writing(target):
            if target.exists():
                os.replace(target, old)
            os.replace(new, target)
            atomic.sync_folder(target.parent)
            shutil.rmtree(aside)


class Spool:
    """Writes the rows of one evaluation into a folder.

    Args:
        folder: an empty one.
        card: of as many rows as are expected; of none where that is not known.
        schema: of the chunks.

    Attributes:
        rows: how many were written so far.
    """

    def __init__(self, folder: Path, card: RunCard, schema: pa.Schema) -> None:
        self._folder = folder
        self._card = card
        self._schema = schema
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._sums: dict[str, str] = {}
        self.rows = 0
        if card.rows:  # else it is not known yet
            card.write(folder)

    def add_tokenizer(self, content: Path) -> None:
        """Put the tokenizer at ``content`` into the set, as a hard link where there can be one."""
        path = self._folder / TOKENIZER_FILE
        path.parent.mkdir()
        link_or_copy(content, path)
        self._sums[TOKENIZER_FILE] = file_sha256(path)

    def add(self, columns: Mapping[str, pa.Array]) -> None:
        """Add rows: all columns of the schema but ``row``."""
        count = len(columns["id"])
        numbers = pa.array(range(self.rows, self.rows + count), pa.int64())
        columns = {"row": numbers, **columns}
        arrays = [columns[field.name] for field in self._schema]
        self._waiting.append(pa.table(arrays, schema=self._schema))
        self._waiting_rows += count
        self.rows += count
        while self._waiting_rows >= self._card.chunk_rows:
            self._write(self._card.chunk_rows)

    def seal(self) -> None:
        """Write what waits, and the seal."""
        if self._waiting_rows:
            self._write(self._waiting_rows)
        if self.rows != self._card.rows:
            # A stream, or a loader that drops rows: how many there are is known now.
            chunks = -(-self.rows // self._card.chunk_rows)
            self._card = msgspec.structs.replace(self._card, rows=self.rows, chunks=chunks)
            self._card.write(self._folder)
        self._sums[RUN_CARD] = file_sha256(self._folder / RUN_CARD)
        atomic.write_text(self._folder / SUMS, format_sums(self._sums))

    def _write(self, rows: int) -> None:
        waiting = pa.concat_tables(self._waiting, promote_options="none")
        chunk = sum(name.startswith("chunk-") for name in self._sums)
        name = chunk_name(chunk)
        table = waiting.slice(0, rows).unify_dictionaries().combine_chunks()
        with writing(self._folder):
            self._sums[name] = write_chunk_atomically(self._folder / name, table, self._card, chunk)
        self._waiting = [waiting.slice(rows)]
        self._waiting_rows -= rows
