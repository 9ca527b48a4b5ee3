"""Clipped n-gram matches of pairs: one prediction and one reference per row, all orders at once.

What ``ngrams`` counts order by order with hash tables, counted from one sorting. Each place of a
text becomes a number: the ``max_order`` tokens from there on, a few bits for each, the side last.
In the sorted numbers of a row, equal n-grams of every order stand together: they share the first
bits. NumPy sorts short rows several times as fast as a hash table numbers them.

Behind its end a text goes on with a mark of its side, so that what is shorter than an n-gram never
matches. Where the numbers have too many bits (a large alphabet and long n-grams), or one row is
much longer than the others, ``ngrams`` counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.score.buffers import to_numpy
from pipeline.score.ngrams import PREDICTION, Integers, Sides, clipped_matches
from pipeline.score.words import Words

_BITS = 63
_MARKS = 2  # 0 behind predictions, 1 behind references
_NEVER = np.iinfo(np.int64).max
# How much larger than its content the table of rows may be.
WASTE = 8


def pair_matches(words: Words, rows: int, max_order: int) -> Integers:
    """(rows, max_order) matches per order.

    Args:
        words: tokens of all predictions, then of all references, one per row each.
        rows: how many.
        max_order: longest n-gram.
    """
    if max_order == 0 or len(words.tokens) == 0:
        return np.zeros((rows, max_order), np.int64)
    encoded = words.tokens.dictionary_encode()
    bits = (len(encoded.dictionary) + _MARKS - 1).bit_length()
    lengths = words.counts[:rows] + words.counts[rows:]
    tokens, width = len(words.tokens), int(lengths.max(initial=0))
    if bits * max_order + 1 > _BITS or rows * width > WASTE * tokens:
        sides = Sides(np.tile(np.arange(rows), 2), np.repeat([PREDICTION, 0], rows))
        return clipped_matches(words, sides, rows, max_order)
    codes = to_numpy(encoded.indices).astype(np.int64) + _MARKS
    table = np.full((rows, width), _NEVER)
    _fill(table, _windows(codes, words.counts, rows, max_order, bits), words.counts)
    table.sort(axis=1)
    windows = table[np.arange(width) < lengths[:, None]]
    bounds = np.concatenate(([0], np.cumsum(lengths)))
    matches = np.empty((rows, max_order), np.int64)
    for order in range(max_order):
        prefixes = windows >> (bits * (max_order - order - 1) + 1)
        matches[:, order] = _shared(prefixes, windows & 1, bounds)
    return matches


def _windows(codes: Integers, counts: Integers, rows: int, max_order: int, bits: int) -> Integers:
    """(tokens,) the ``max_order`` codes from each token on, then its side, in one number."""
    text = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(codes)) + text * (max_order - 1)
    marked = np.zeros(len(codes) + len(counts) * (max_order - 1), np.int64)
    marked[int(counts[:rows].sum()) + rows * (max_order - 1) :] = 1
    marked[place] = codes
    windows = marked
    for following in range(1, max_order):
        windows = (windows[:-1] << bits) | marked[following:]
    numbers: Integers = (windows[place] << 1) | (text >= rows)
    return numbers


def _fill(table: Integers, windows: Integers, counts: Integers) -> None:
    """Put the windows of each row into its line, the prediction's first."""
    rows, width = table.shape
    starts = np.arange(rows) * width
    starts = np.concatenate((starts, starts + counts[:rows]))
    offsets = starts - (np.cumsum(counts) - counts)
    table.reshape(-1)[np.arange(len(windows)) + np.repeat(offsets, counts)] = windows


def _shared(prefixes: Integers, side: Integers, bounds: Integers) -> Integers:
    """(rows,) how many prefixes stand on both sides of a row, each as often as on the rarer side.

    Args:
        prefixes: n-grams; equal ones of a row stand together.
        side: of each, 0 or 1.
        bounds: (rows + 1,) where the rows begin and end.
    """
    begins: NDArray[np.bool_] = np.empty(len(prefixes) + 1, np.bool_)
    begins[1:-1] = prefixes[1:] != prefixes[:-1]
    begins[bounds] = True
    group = np.cumsum(begins) - 1  # the last is the number of groups
    counts = np.bincount(2 * group[:-1] + side, minlength=2 * int(group[-1]))
    shared = np.concatenate(([0], np.cumsum(np.minimum(counts[::2], counts[1::2]))))
    sums: Integers = np.diff(shared[group[bounds]])
    return sums
