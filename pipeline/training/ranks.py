"""What rank 0 does for all, so that every rank goes on, or fails, alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.errors import RankError


def from_main(trainer: Any, work: Callable[[], Any]) -> Any:
    """What ``work`` gives on rank 0, on every rank.

    Args:
        trainer: says which rank this is.
        work: called on rank 0 only; what it gives must pickle.

    Raises:
        RankError: ``work`` raised, on the other ranks; rank 0 raises what it raised.
    """
    from accelerate.utils import broadcast_object_list

    result: list[Any] = [None, None]
    error: BaseException | None = None
    if trainer.is_world_process_zero():
        try:
            result[0] = work()
        except Exception as raised:
            error, result[1] = raised, f"{type(raised).__name__}: {raised}"
    broadcast_object_list(result)
    if error is not None:
        raise error
    if result[1] is not None:
        raise RankError(f"rank 0 could not record this evaluation ({result[1]}); see its message")
    return result[0]


def most(entries: dict[str, int]) -> dict[str, int]:
    """Of each entry the largest over all ranks."""
    from accelerate.utils import gather_object

    ranks: list[dict[str, int]] = gather_object([entries])
    return {name: max(rank[name] for rank in ranks) for name in entries}
