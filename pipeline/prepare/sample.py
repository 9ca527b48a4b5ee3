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

    def key(row: int) -> bytes:
        return hashlib.blake2b(f"{seed}:{row}".encode(), digest_size=16).digest()

    return sorted(heapq.nsmallest(limit, rows, key=key))
