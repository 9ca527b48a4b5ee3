"""Batches inside a chunk: rows of like length together, under a row cap and a token budget.

Padding is what batches of mixed lengths pay for (1.2–1.6× the time of sorted ones, measured on
the default model). The longest come first, so that a batch that is too large for the device
fails at once rather than an hour later. Batches never cross a chunk: a chunk's tokens depend on
its own rows alone, which is what makes a resumed run equal to an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Sequence


def plan_batches(
    lengths: Sequence[int], new_tokens: int, max_rows: int, max_tokens: int | None
) -> list[list[int]]:
    """Positions of ``lengths`` grouped into batches.

    Args:
        lengths: prompt tokens per row.
        new_tokens: tokens that a row may add.
        max_rows: most rows per batch.
        max_tokens: most tokens per batch, rows × (longest prompt + ``new_tokens``); a row that is
            longer alone is a batch of its own. None is no limit.

    Returns:
        Every position once; longest first, equal lengths in row order.
    """
    batches: list[list[int]] = []
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batch:
            widest = lengths[batch[0]] + new_tokens
            full = len(batch) == max_rows
            if full or (max_tokens is not None and (len(batch) + 1) * widest > max_tokens):
                batches.append(batch)
                batch = []
        batch.append(position)
    if batch:
        batches.append(batch)
    return batches
