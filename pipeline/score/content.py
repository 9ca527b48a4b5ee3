"""``content``: the hash of what was scored, whatever chunks it came in.

Predictions re-cut into other chunks, copied, or read with other row groups give the same hash;
other rows, ids, texts, references or decode options give another one. Lengths are hashed in a
stream of their own, so that two ways of cutting the same bytes differ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.errors import PredictionSetError
from pipeline.score.buffers import list_lengths, list_offsets, one_array, to_numpy
from pipeline.store.card import RunCard
from pipeline.store.chunk import ChunkReader
from pipeline.store.place import Place

_STREAMS = (
    "rows",
    "predictions",
    "prediction_lengths",
    "references",
    "reference_lengths",
    "references_per_row",
)
# Only in the hash of a set that has some.
_NULLS = ("null_references", "rows_without_references")


class ContentHash:
    """Hashes the rows of a set, in order.

    Args:
        card: the set's; says whether predictions are ids or text, and how ids are decoded.
    """

    def __init__(self, card: RunCard) -> None:
        self._text = card.prediction == "text"
        self._decode = {} if self._text else msgspec.to_builtins(card.decode)
        self._streams = {name: hashlib.sha256() for name in (*_STREAMS, *_NULLS)}
        self._texts = self._rows = 0  # seen so far

    def update(self, table: pa.Table) -> None:
        """Add rows of a chunk without null predictions."""
        self._add("rows", to_numpy(one_array(table.column("row"))), "<i8")
        if self._text:
            self._add_texts("predictions", one_array(table.column("prediction")))
        else:
            ids = one_array(table.column("prediction_ids"))
            self._add("predictions", to_numpy(ids.flatten()), "<i4")
            self._add("prediction_lengths", np.diff(list_offsets(ids)), "<i8")
        references = one_array(table.column("references"))
        texts = references.flatten()
        self._add_nulls("null_references", texts, self._texts)
        self._add_nulls("rows_without_references", references, self._rows)
        self._texts += len(texts)
        self._rows += len(references)
        self._add_texts("references", texts)
        self._add("references_per_row", list_lengths(references), "<i8")

    def hexdigest(self) -> str:
        """32 hex digits."""
        nothing = hashlib.sha256().hexdigest()
        parts = {name: stream.hexdigest() for name, stream in self._streams.items()}
        parts = {name: part for name, part in parts.items() if name in _STREAMS or part != nothing}
        canonical = json.dumps({**parts, "decode": self._decode}, sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:32]

    def _add(self, stream: str, values: NDArray[np.generic], kind: str) -> None:
        self._streams[stream].update(np.ascontiguousarray(values, dtype=kind).data)

    def _add_nulls(self, stream: str, array: pa.Array, offset: int) -> None:
        if array.null_count:
            places = np.flatnonzero(array.is_null().to_pylist())
            self._add(stream, places + offset, "<i8")

    def _add_texts(self, stream: str, texts: pa.Array) -> None:
        # Buffers of a slice are those of the whole array: cut them.
        offsets = np.frombuffer(texts.buffers()[1] or b"\0\0\0\0", "<i4")
        offsets = offsets[texts.offset : texts.offset + len(texts) + 1]
        data = memoryview(texts.buffers()[2] or b"")
        self._streams[stream].update(data[offsets[0] : offsets[-1]])
        self._add(f"{stream.removesuffix('s')}_lengths", np.diff(offsets), "<i8")


def hash_content(
    place: Place, card: RunCard, chunks: Mapping[int, str | None]
) -> str | PredictionSetError:
    """The hash over ``chunks`` (ascending, each with its sha256 where known) of a set.

    A chunk that cannot be read is returned as its error: whoever scores it meets the same error,
    together with those of other chunks.
    """
    content = ContentHash(card)
    try:
        for chunk, sha256 in chunks.items():
            for table in ChunkReader.at(place, card, chunk, sha256).tables():
                content.update(table)
    except PredictionSetError as error:
        return error
    return content.hexdigest()
