"""A block of a chunk → the texts that metrics compare.

One rule stands before all metrics: of several references, a blank one (empty, or white space only)
is no reference. Counted as one, it is the closest in length to a short prediction and changes BLEU
by points. A row with nothing but blank references keeps one. What is blank is asked after
``score.normalize``.

A reference that is null counts as a blank one, and a row without any reference (null, or an empty
list) has one that is empty. Neither prepare nor ingest writes such rows, other writers may.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

import pyarrow as pa

from pipeline.errors import DamagedChunkError
from pipeline.score.buffers import list_lengths, list_offsets, one_array, to_numpy
from pipeline.score.decode import Decoder
from pipeline.score.normalize import Normalizer


class Texts(NamedTuple):
    """Texts of some rows, and what had to be decided about them.

    Attributes:
        predictions: one text per row.
        references: one or more texts per row.
        empty_references: rows with nothing but blank references.
        dropped_references: blank references that stood beside others.
        null_references: references that are null, and rows that have none.
        unknown_ids: token ids that the tokenizer does not know; they decode to nothing.
    """

    predictions: list[str]
    references: list[list[str]]
    empty_references: int = 0
    dropped_references: int = 0
    null_references: int = 0
    unknown_ids: int = 0


def read_texts(
    block: pa.Table,
    where: str,
    decoder: Decoder | None,
    normalizer: Normalizer | None = None,
) -> Texts:
    """The texts of ``block``, rows of the chunk at ``where``.

    Args:
        block: rows as ``schema.chunk_schema`` has them.
        where: the chunk, for messages.
        decoder: for sets of ids; None where the chunk holds text.
        normalizer: what every text goes through.

    Raises:
        DamagedChunkError: a prediction, an id or a finish reason is null, or an id is negative.
    """
    _reject_nulls(one_array(block.column("finish_reason")), block, where, "the finish reason")
    predictions, unknown_ids = _predictions(block, where, decoder)
    references, null_references = _references(block)
    if normalizer is not None:
        predictions = normalizer.all(predictions)
        references = list(map(normalizer.all, references))
    kept = [_without_blank(texts) for texts in references]
    return Texts(
        predictions,
        kept,
        empty_references=sum(1 for texts in kept if not texts[0].strip()),
        dropped_references=sum(map(len, references)) - sum(map(len, kept)),
        null_references=null_references,
        unknown_ids=unknown_ids,
    )


def _predictions(block: pa.Table, where: str, decoder: Decoder | None) -> tuple[list[str], int]:
    if decoder is None:
        texts = one_array(block.column("prediction"))
        _reject_nulls(texts, block, where, "the prediction")
        predictions: list[str] = texts.to_pylist()
        return predictions, 0
    ids = one_array(block.column("prediction_ids"))
    _reject_nulls(ids, block, where, "the prediction")
    values = ids.flatten()
    if values.null_count:
        raise _fault(where, _row_of_value(block, ids, values.is_null()), "a token id is null")
    negative = to_numpy(values) < 0
    if negative.any():
        position = int(negative.argmax())
        raise _fault(
            where,
            _row_of_position(block, ids, position),
            f"token id {values[position].as_py()} is negative: padding or a label mask (-100) "
            "was written as a prediction",
        )
    return decoder.decode(ids), decoder.unknown_ids(ids)


def _references(block: pa.Table) -> tuple[list[list[str]], int]:
    """The references of each row, at least one, and how many are null or missing."""
    lists = one_array(block.column("references"))
    texts = lists.flatten()  # without what a null list may hide
    values = [text or "" for text in texts.to_pylist()] if texts.null_count else texts.to_pylist()
    lengths = list_lengths(lists).tolist()
    stops = list(accumulate(lengths, initial=0))
    references = [values[start:stop] or [""] for start, stop in pairwise(stops)]
    return references, texts.null_count + lengths.count(0)


def _without_blank(references: list[str]) -> list[str]:
    if len(references) == 1:
        return references
    return [text for text in references if text.strip()] or references[:1]


def _reject_nulls(array: pa.Array, block: pa.Table, where: str, what: str) -> None:
    if array.null_count:
        index = array.is_null().to_pylist().index(True)
        raise _fault(where, _row(block, index), f"{what} is null")


def _row_of_value(block: pa.Table, lists: pa.Array, wanted: pa.Array) -> int:
    return _row_of_position(block, lists, wanted.to_pylist().index(True))


def _row_of_position(block: pa.Table, lists: pa.Array, position: int) -> int:
    """Row number of the list that holds the flattened value at ``position``."""
    index = int(list_offsets(lists).searchsorted(position, side="right")) - 1
    return _row(block, index)


def _row(block: pa.Table, index: int) -> int:
    row: int = block.column("row")[index].as_py()
    return row


def _fault(where: str, row: int, what: str) -> DamagedChunkError:
    return DamagedChunkError(
        f"{where}, row {row}: {what}; correct the data and run `twophase predict` again, "
        "or copy the set again"
    )
