"""What a prediction set holds, without judging it: an unfinished one can be looked at, too."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa

from pipeline.errors import PredictionSetError
from pipeline.score.buffers import one_array
from pipeline.score.decode import Decoder, TokenizerFile
from pipeline.store.card import RunCard
from pipeline.store.chunk import chunk_name
from pipeline.store.place import Where
from pipeline.store.prediction_set import SUMS, TOKENIZER_FILE, PredictionSet


def view(where: Where, rows: int) -> dict[str, Any]:
    """What there is to say about the set at ``where``.

    Args:
        where: folder or URL of the set.
        rows: how many of the first rows to show.

    Returns:
        ``card``, ``sealed``, ``chunks`` (each with its rows and size), ``missing``, ``size_bytes``,
        ``first_rows``, and ``unreadable``: why there are none, or null.

    Raises:
        PredictionSetError: no set, or one whose card is damaged.
    """
    source = PredictionSet(where)
    card = source.card
    chunks = []
    for chunk in source.present():
        start, stop = card.bounds(chunk)
        size = source.sizes[chunk_name(chunk)]
        chunks.append(
            {
                "name": chunk_name(chunk),
                "first_row": start,
                "rows": stop - start,
                "size_bytes": size,
            }
        )
    first_rows, unreadable = _first_rows(source, rows)
    return {
        "folder": str(source.place),
        "card": json.loads(card.to_bytes()),
        "sealed": source.sealed,
        "tokenizer": TOKENIZER_FILE in source.sizes,
        "chunks": chunks,
        "missing": [chunk_name(chunk) for chunk in source.missing()],
        "size_bytes": sum(source.sizes.values()),
        "first_rows": first_rows,
        "unreadable": unreadable,
    }


def view_row(where: Where, row: int) -> dict[str, Any]:
    """All columns of one row, with the text that its ids decode to.

    Raises:
        PredictionSetError: no set, no such row, or a chunk that is missing or damaged.
    """
    source = PredictionSet(where)
    card = source.card
    start, stop = _bounds(card)
    if not start <= row < stop:
        raise PredictionSetError(
            f"{where} has no row {row}: its rows are {start} to {stop - 1}"
            if stop > start
            else f"{where} has no row {row}: it has no rows"
        )
    chunk = next(n for n in range(card.chunks) if card.bounds(n)[0] <= row < card.bounds(n)[1])
    if chunk not in source.present():
        raise PredictionSetError(
            f"{where}: row {row} is in {chunk_name(chunk)}, which is missing; make it with "
            "`twophase predict` where the model is"
        )
    decoder = _decoder(source)
    for table in source.reader(chunk).tables():
        first = table.column("row")[0].as_py()
        if first <= row < first + len(table):
            return _decoded(table.slice(row - first, 1), decoder)[0]
    raise AssertionError("a chunk that was checked has all its rows")


def _bounds(card: RunCard) -> tuple[int, int]:
    if not card.chunks:
        return 0, 0
    return card.bounds(0)[0], card.bounds(card.chunks - 1)[1]


def _first_rows(source: PredictionSet, rows: int) -> tuple[list[dict[str, Any]], str | None]:
    """The first rows of the first chunk that is there, or why they cannot be read."""
    present = source.present()
    if not present or not rows:
        return [], None
    try:
        decoder = _decoder(source)
        for table in source.reader(present[0]).tables():
            return _decoded(table.slice(0, rows), decoder), None
    except PredictionSetError as error:
        return [], str(error)
    return [], None


def _decoder(source: PredictionSet) -> Decoder | None:
    if source.card.prediction == "text" or TOKENIZER_FILE not in source.sizes:
        return None
    expected = (source.sums or {}).get(TOKENIZER_FILE)
    found = hashlib.sha256(source.place.read(TOKENIZER_FILE)).hexdigest()
    if expected not in (None, found):
        raise PredictionSetError(
            f"{source.place.at(TOKENIZER_FILE)} is damaged: its sha256 is not the one in {SUMS}; "
            "copy the set again"
        )
    return Decoder(TokenizerFile(source.place, found), source.card.decode)


def _decoded(table: pa.Table, decoder: Decoder | None) -> list[dict[str, Any]]:
    """Rows as dictionaries; ids that can be decoded have their text beside them."""
    rows: list[dict[str, Any]] = table.to_pylist()
    if decoder is None or "prediction_ids" not in table.column_names:
        return rows
    ids = one_array(table.column("prediction_ids"))
    decodable = [
        values is not None and all(value is not None and value >= 0 for value in values)
        for values in ids.to_pylist()
    ]
    texts = iter(decoder.decode(ids.filter(pa.array(decodable, pa.bool_()))))
    shown = []
    for row, known in zip(rows, decodable, strict=True):
        text = next(texts) if known else None
        head = {name: row[name] for name in ("row", "id")}
        rest = {name: value for name, value in row.items() if name not in head}
        shown.append({**head, "prediction": text, **rest})
    return shown
