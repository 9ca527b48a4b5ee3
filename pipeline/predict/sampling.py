"""Sampling that depends on (seed, row) alone, not on the rows beside a row.

``torch.multinomial`` draws for a whole batch from one generator, so what a row gets depends on
its place. Here each row has a generator of its own, and the token is the argmax of scores plus
Gumbel noise, which is a sample of their softmax (Gumbel 1954; Maddison et al., "A* Sampling",
NeurIPS 2014). The scores come after temperature, top-k and the like, as ``transformers`` makes
them, so what those removed (−inf) stays removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class GumbelNoise:
    """A logits processor that adds noise; the last of them, before an argmax.

    Args:
        seed: ``predict.seed``.
        rows: numbers of the batch's rows in the data set.
        device: where the scores are; the noise is drawn there.
    """

    def __init__(self, seed: int, rows: Sequence[int], device: torch.device) -> None:
        import torch

        self._generators = [
            torch.Generator(device).manual_seed(stream_seed(seed, row)) for row in rows
        ]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """``scores`` with noise added.  # (rows, vocabulary) float32"""
        import torch

        uniform = torch.empty_like(scores)
        for row, generator in zip(uniform, self._generators, strict=True):
            row.uniform_(generator=generator)
        # Multiples of 2^-24, moved off 0 and 1, where the noise would be infinite.
        uniform = (uniform + 2.0**-25).clamp_(max=1 - 2.0**-24)
        return scores - torch.log(-torch.log1p(-uniform))


def stream_seed(seed: int, row: int) -> int:
    """A 64-bit seed; below 2^32 rows, no two of a run share its lower half.

    That half is all that torch's CPU generator looks at. It is a bijection of the row: the
    finaliser of MurmurHash3 over row xor a hash of the seed.
    """
    high = _mix32(seed & 0xFFFFFFFF) ^ _mix32((seed >> 32) & 0xFFFFFFFF ^ 0x9E3779B9)
    return (high << 32) | _mix32(row & 0xFFFFFFFF ^ high ^ (row >> 32))


def _mix32(value: int) -> int:
    value ^= value >> 16
    value = value * 0x85EBCA6B & 0xFFFFFFFF
    value ^= value >> 13
    value = value * 0xC2B2AE35 & 0xFFFFFFFF
    return value ^ value >> 16
