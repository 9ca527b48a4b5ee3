"""What sacreBLEU's chrF compares: characters and words, over all texts at once.

Characters are those that ``str.split`` leaves (or all of them). Words are what it leaves, with
one punctuation mark split off: the last character where that is one, else the first (Popović 2017;
``(hi)`` becomes ``(hi`` and ``)``). Only ASCII punctuation counts.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.score.buffers import from_numpy
from pipeline.score.characters import SPACE, rules
from pipeline.score.words import Words

_PUNCTUATION = np.zeros(129, np.bool_)
_PUNCTUATION[[ord(mark) for mark in string.punctuation]] = True
_BEYOND_ASCII = 128


class ChrfTokens(NamedTuple):
    """Both views of some texts."""

    characters: Words
    words: Words


def split_for_chrf(texts: Sequence[str], *, whitespace: bool) -> ChrfTokens:
    """Characters and words of ``texts``; ``whitespace`` keeps spaces among the characters."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    # One space before, between and after the texts; edges holds their positions.
    edges = np.concatenate(([0], np.cumsum(lengths + 1)))
    padded = " " + "".join(text + " " for text in texts)
    points = np.frombuffer(padded.encode("utf-32-le", "surrogatepass"), "<u4")
    solid = (rules("none").classes[points] & SPACE) == 0
    bounds = np.cumsum(solid)[edges]  # of each text among its letters
    letters = points[solid]
    if whitespace:
        inside = np.ones(len(points), np.bool_)
        inside[edges] = False
        characters = Words(_characters(points[inside]), lengths)
    else:
        characters = Words(_characters(letters), np.diff(bounds))
    begins = solid.copy()
    begins[1:] &= ~solid[:-1]
    return ChrfTokens(characters, _words(letters, begins[solid], bounds))


def _characters(points: NDArray[np.uint32]) -> pa.Array:
    return from_numpy(points.astype(np.int32))


def _words(
    letters: NDArray[np.uint32], begins: NDArray[np.bool_], bounds: NDArray[np.int64]
) -> Words:
    """The words that start where ``begins`` says, without the punctuation at one of their ends."""
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(letters))[: len(first)] - 1
    marks = _PUNCTUATION[np.minimum(letters, _BEYOND_ASCII)]
    several = last > first
    tail = several & marks[last]
    begins[last[tail]] = True
    begins[first[several & ~tail & marks[first]] + 1] = True
    offsets = np.append(np.flatnonzero(begins), len(letters)) * 4
    tokens = pa.Array.from_buffers(
        pa.large_binary(),
        len(offsets) - 1,
        [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(letters)],
    )
    before = np.concatenate(([0], np.cumsum(begins)))  # words before each letter
    return Words(tokens, np.diff(before[bounds]))
