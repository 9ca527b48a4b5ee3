"""Which ids occur twice, found with 8 bytes a row.

Ids of a data set or of a prediction set are unique; a set of them all would take a hundred bytes
or more a row. Equal 64-bit hashes only make suspects: who asks compares the ids themselves.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable

import numpy as np


class IdHashes:
    """64-bit hashes of ids, 8 bytes each whatever their length."""

    def __init__(self) -> None:
        self._hashes = array("Q")

    def add(self, ids: Iterable[str]) -> None:
        self._hashes.extend(map(hash_id, ids))

    def repeated(self) -> set[int]:
        """Hashes that occur more than once."""
        ordered = np.sort(np.frombuffer(self._hashes, np.uint64))
        return {int(value) for value in ordered[1:][ordered[1:] == ordered[:-1]]}


def hash_id(text: str) -> int:
    """64 bits of BLAKE2b."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
