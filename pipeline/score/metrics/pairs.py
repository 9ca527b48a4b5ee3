"""Each prediction beside each of its references, and back to one pair per row.

Metrics that score a prediction against one reference at a time compare all pairs first and keep,
per row, the pair that their rule prefers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.score.metrics.base import check_rows

Integers = NDArray[np.int64]


class Pairs(NamedTuple):
    """One entry per (row, reference), row by row.

    Attributes:
        predictions: (pairs,) the row's prediction.
        references: (pairs,) the reference.
        row: (pairs,) the row.
        first: (rows,) the first pair of each row.
    """

    predictions: list[str]
    references: list[str]
    row: Integers
    first: Integers

    def preferred(self, *keys: NDArray[np.generic]) -> Integers:
        """(rows,) the pair of each row with the smallest ``keys[0]``; ``keys[1]``, … break ties.

        Of pairs that are equal in all of them it is the first.
        """
        if len(self.row) == len(self.first):
            return self.first
        order = np.lexsort((*reversed(keys), self.row))  # stable; leaves the rows where they are
        chosen: Integers = order[self.first]
        return chosen


def pair_up(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Pairs:
    """The pairs of some rows.

    Raises:
        ValueError: the lengths differ, or a row has no reference.
    """
    check_rows(predictions, references)
    counts = np.fromiter(map(len, references), np.int64, len(references))
    row = np.repeat(np.arange(len(references)), counts)
    return Pairs(
        [predictions[index] for index in row.tolist()],
        list(chain.from_iterable(references)),
        row,
        np.cumsum(counts) - counts,
    )
