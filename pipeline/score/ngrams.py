"""Clipped n-gram matches (Papineni et al. 2002, section 2.1) of many rows at once.

An n-gram is a number, given by a hash table (Arrow's ``dictionary_encode``), so equality is exact;
the row is part of the key, so that the occurrences of a number are counted with one ``bincount``. A
longer n-gram is a pair of overlapping shorter ones, and can only match where both of them do: each
order looks only at what the order before it left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.score.buffers import from_numpy, to_numpy
from pipeline.score.words import Words

PREDICTION = -1
# Numbers with gaps cost less than new ones while there are at most so many per occurrence.
DENSE = 4

Integers = NDArray[np.int64]


class Sides(NamedTuple):
    """Which side of which row each text is.

    Attributes:
        row: (texts,) the row.
        slot: (texts,) ``PREDICTION``, or 0, 1, … for the row's first, second, … reference.
    """

    row: Integers
    slot: Integers


def make_sides(references: Sequence[Sequence[str]]) -> Sides:
    """The sides of all predictions, then all references, row by row."""
    rows = len(references)
    counts = np.fromiter(map(len, references), np.int64, rows)
    row = np.repeat(np.arange(rows), counts)
    slot = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Sides(
        np.concatenate((np.arange(rows), row)), np.concatenate((np.full(rows, PREDICTION), slot))
    )


def closest_lengths(counts: Integers, sides: Sides, rows: int) -> Integers:
    """(rows,) length of the reference closest to the prediction's; of two, the shorter one.

    Args:
        counts: (texts,) tokens of each text.
        sides: of the texts, as ``make_sides`` has them.
        rows: how many.
    """
    row, slot = sides.row[rows:], sides.slot[rows:]
    lengths = counts[rows:]
    distance = np.abs(lengths - counts[:rows][row])
    first = np.lexsort((lengths, distance, row))
    closest: Integers = lengths[first[slot == 0]]  # the sorting leaves the rows where they are
    return closest


class _Grams(NamedTuple):
    # One entry per occurrence: its n-gram (numbered over all rows), the place of its first token
    # (a place is left free between texts), and its text.
    gram: Integers
    kinds: int  # numbers are below it; there may be gaps
    place: Integers
    text: Integers


def clipped_matches(words: Words, sides: Sides, rows: int, max_order: int) -> Integers:
    """(rows, max_order) matches per order.

    An n-gram of the prediction counts as often as it stands there, but not more often than in the
    reference that has it most often.
    """
    matches = np.zeros((rows, max_order), np.int64)
    grams = _unigrams(words, sides)
    for order in range(max_order):
        if len(grams.gram) == 0:
            break
        predicted, referenced = _counts(grams, sides)
        row_of_gram = np.zeros(grams.kinds, np.int64)
        row_of_gram[grams.gram] = sides.row[grams.text]
        clipped = np.minimum(predicted, referenced)
        matches[:, order] = np.bincount(row_of_gram, weights=clipped, minlength=rows)
        grams = _longer(grams, clipped > 0)
    return matches


def distinct_ngrams(words: Words, max_order: int) -> Integers:
    """(texts, max_order) how many different n-grams each text has, per order."""
    texts = len(words.counts)
    distinct = np.zeros((texts, max_order), np.int64)
    grams = _unigrams(words, Sides(np.arange(texts), np.full(texts, PREDICTION)))
    for order in range(max_order):
        if len(grams.gram) == 0:
            break
        text_of_gram = np.full(grams.kinds, texts)  # no text has a number in a gap
        text_of_gram[grams.gram] = grams.text
        distinct[:, order] = np.bincount(text_of_gram, minlength=texts + 1)[:texts]
        grams = _longer(grams, np.ones(grams.kinds, np.bool_))
    return distinct


def _unigrams(words: Words, sides: Sides) -> _Grams:
    encoded = words.tokens.dictionary_encode()
    vocabulary = max(len(encoded.dictionary), 1)
    text = np.repeat(np.arange(len(words.counts)), words.counts)
    gram = sides.row[text] * vocabulary + to_numpy(encoded.indices)
    kinds = (int(sides.row.max(initial=-1)) + 1) * vocabulary
    if kinds > DENSE * len(gram):
        gram, kinds = _number(gram)
    return _Grams(gram, kinds, np.arange(len(text)) + text, text)


def _longer(grams: _Grams, shared: NDArray[np.bool_]) -> _Grams:
    """The n-grams, one token longer, of which both shorter ones are ``shared`` by both sides."""
    matched = shared[grams.gram]
    follows = grams.place[1:] == grams.place[:-1] + 1
    first = np.flatnonzero(matched[:-1] & matched[1:] & follows)
    gram, kinds = _number(grams.gram[first] * grams.kinds + grams.gram[first + 1])
    return _Grams(gram, kinds, grams.place[first], grams.text[first])


def _counts(grams: _Grams, sides: Sides) -> tuple[Integers, Integers]:
    """(kinds,) occurrences in the prediction, and most occurrences in one reference."""
    slot = sides.slot[grams.text]
    predicted = np.bincount(grams.gram[slot == PREDICTION], minlength=grams.kinds)
    referenced = np.zeros(grams.kinds, np.int64)
    for reference in range(int(slot.max()) + 1):
        counts = np.bincount(grams.gram[slot == reference], minlength=grams.kinds)
        np.maximum(referenced, counts, out=referenced)
    return predicted, referenced


def _number(keys: Integers) -> tuple[Integers, int]:
    """Equal keys get equal numbers, counted from 0; returns them and how many there are."""
    encoded = from_numpy(keys).dictionary_encode()
    return to_numpy(encoded.indices).astype(np.int64), len(encoded.dictionary)
