"""A hash of each row's references, so that ``compare`` knows whether two sets had the same ones.

It stands beside the statistics in ``scores/``, row by row, because rows of two sets are matched by
id: neither their order nor their chunks need be the same. What is hashed is what metrics see, that
is, after blank references beside others were dropped (``texts``).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from pipeline.score.ngrams import Integers

REFERENCES_HASH = "references_hash"
_BYTES = 8


def hash_references(references: Sequence[Sequence[str]]) -> Integers:
    """(rows,) the first 64 bits of BLAKE2b over each row's references, in order.

    The same on every machine. One reference is hashed as it is; several with their lengths, so
    that two ways of cutting the same text differ.
    """
    digests = b"".join([_digest(texts) for texts in references])
    return np.frombuffer(digests, "<i8").astype(np.int64)


def _digest(texts: Sequence[str]) -> bytes:
    if len(texts) == 1:
        return blake2b(texts[0].encode(), digest_size=_BYTES).digest()
    listed = "".join([f"{len(text)}:{text}" for text in texts])
    return blake2b(listed.encode(), digest_size=_BYTES, person=b"several").digest()
