"""Which rows are evaluated."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable


def sample(rows: Iterable[int], limit: int, seed: int) -> list[int]:
    """``limit`` of ``rows``, in ascending order: those of smallest keyed hash.

    A row is in the sample or not by (seed, row) and the limit alone: in whatever order the rows
    come, a sample of 100 holds the sample of 50, and rows added at the end of a data set replace
    only as many as they must. Holds ``limit`` numbers, so ``rows`` may be a stream.
    """

    return sorted(heapq.nsmallest(limit, rows, key=lambda row: _key(seed, row)))


class Sampler:
    """The same sample of rows that come one by one; holds ``limit`` numbers."""

    def __init__(self, limit: int, seed: int) -> None:
        self._limit = limit
        self._seed = seed
        self._heap: list[tuple[int, int]] = []  # (−key, row): the largest key is on top

    def offer(self, row: int) -> bool:
        """Whether ``row`` is in the sample of all rows so far; a later one may put it out."""
        entry = (-int.from_bytes(_key(self._seed, row), "big"), row)
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, entry)
            return True
        return heapq.heappushpop(self._heap, entry) != entry

    def rows(self) -> list[int]:
        """The sample, ascending."""
        return sorted(row for _, row in self._heap)


def _key(seed: int, row: int) -> bytes:
    return hashlib.blake2b(f"{seed}:{row}".encode(), digest_size=16).digest()
