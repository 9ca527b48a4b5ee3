"""Rows into the chunks of a set. What is held is one row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from pipeline import atomic
from pipeline.ids import IdHashes, hash_id
from pipeline.ingest.examples import Examples
from pipeline.schema import INGESTED, chunk_schema
from pipeline.store.card import RUN_CARD, RunCard
from pipeline.store.chunk import ROW_GROUP_ROWS, ChunkReader, chunk_name, file_sha256, open_chunk
from pipeline.store.prediction_set import SUMS, format_sums

# A row group ends here too, so that long texts do not make large ones.
GROUP_BYTES = 64 << 20


def write_set(
    folder: Path, card: RunCard, keep: Iterable[pa.Field], batches: Iterable[Examples]
) -> IdHashes:
    """Write card, chunks and seal into ``folder``; return the hashes of the ids.

    Args:
        folder: an empty one.
        card: plans as many rows as ``batches`` hold.
        keep: fields of the kept columns.
        batches: the rows, in order.
    """
    hashes = IdHashes()
    schema = chunk_schema(text=True, keep=keep)
    groups = _groups(_tables(batches, schema, hashes), card)
    card.write(folder)
    sums = {RUN_CARD: file_sha256(folder / RUN_CARD)}
    for chunk, tables in groupby(groups, key=lambda group: _row(group) // card.chunk_rows):
        path = folder / chunk_name(chunk)
        with atomic.atomic_path(path) as temporary:
            with open_chunk(temporary, schema, card, chunk) as writer:
                for table in tables:
                    writer.write_table(table.cast(writer.schema))
            sums[path.name] = file_sha256(temporary)
    atomic.write_text(folder / SUMS, format_sums(sums))
    return hashes


def first_repeated(folder: Path, card: RunCard, hashes: IdHashes) -> tuple[str, int, int] | None:
    """An id that occurs twice in the set in ``folder``, with its first two rows.

    The set is read again only where two hashes are equal, which two ids may be by chance.
    """
    suspects = hashes.repeated()
    if not suspects:
        return None
    first: dict[str, int] = {}
    for chunk in range(card.chunks):
        for table in ChunkReader(folder / chunk_name(chunk), card, chunk).tables(["row", "id"]):
            rows, ids = (table.column(name).to_pylist() for name in ("row", "id"))
            for row, identifier in zip(rows, ids, strict=True):
                if hash_id(identifier) in suspects and first.setdefault(identifier, row) != row:
                    return identifier, first[identifier], row
    return None


def _tables(batches: Iterable[Examples], schema: pa.Schema, hashes: IdHashes) -> Iterator[pa.Table]:
    row = 0
    for batch in batches:
        rows = len(batch.ids)
        hashes.add(batch.ids)
        reason = pa.DictionaryArray.from_arrays(
            pa.array([0] * rows, pa.int32()), pa.array([INGESTED])
        )
        columns = {
            "row": pa.array(range(row, row + rows), pa.int64()),
            "id": pa.array(batch.ids, pa.string()),
            "prediction": pa.array(batch.predictions, pa.string()),
            "references": pa.array(batch.references, pa.list_(pa.string())),
            "finish_reason": reason,
            # Nothing is known of prompts and batches.
            "prompt_tokens": pa.array([0] * rows, pa.int32()),
            "truncated": pa.array([False] * rows, pa.bool_()),
            "batch_rows": pa.array([0] * rows, pa.int32()),
            **batch.kept,
        }
        yield pa.table([columns[name] for name in schema.names], schema=schema)
        row += rows


def _groups(tables: Iterable[pa.Table], card: RunCard) -> Iterator[pa.Table]:
    """The rows as row groups: of one chunk each, and not larger than they have to be."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        start = 0
        while start < len(table):
            to_chunk_end = card.chunk_rows - (_row(table) + start) % card.chunk_rows
            part = table.slice(start, min(to_chunk_end, ROW_GROUP_ROWS - rows))
            waiting.append(part)
            start, rows, size = start + len(part), rows + len(part), size + part.nbytes
            if len(part) == to_chunk_end or rows == ROW_GROUP_ROWS or size >= GROUP_BYTES:
                yield pa.concat_tables(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)


def _row(table: pa.Table) -> int:
    row: int = table.column("row")[0].as_py()
    return row
