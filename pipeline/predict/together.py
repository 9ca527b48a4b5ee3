"""What ranks need of each other besides words: the run card on disk, and one progress for all."""

from __future__ import annotations

import socket
import time

from pipeline.errors import RankError
from pipeline.predict.make import Progress
from pipeline.predict.ranks import Ranks
from pipeline.store.work import WorkStore

# A network file system may show a new file late.
_VISIBLE_SECONDS = 60.0


def await_card(store: WorkStore, rank: int) -> None:
    """Wait until this node sees the run card that rank 0 has written, here or at a URL.

    Raises:
        RankError: it does not, so the folder is not shared.
    """
    deadline = time.monotonic() + _VISIBLE_SECONDS
    while not store.begun:
        store.target.find_card(store)
        if time.monotonic() > deadline:
            raise RankError(
                f"rank {rank} on {socket.gethostname()} does not see {store.folder}: several nodes "
                "need --predictions on a file system that they share, or at a URL; without one use "
                "--shard and `twophase merge`"
            )
        time.sleep(0.1)


class RankProgress:
    """Progress of one rank: rank 0 hears of the others' rows, too, the others tell theirs."""

    def __init__(self, progress: Progress, ranks: Ranks) -> None:
        self._progress = progress
        self._ranks = ranks

    def begin(self, rows: int, done: int) -> None:
        self._progress.begin(rows, done)

    def batch(self, rows: int, new_tokens: int, memory_bytes: int | None) -> None:
        self._progress.batch(rows, new_tokens, memory_bytes)

    def chunk(self, chunk: int, telemetry: dict[str, int | float | None]) -> None:
        if self._ranks.rank == 0:
            self.follow()
        else:
            rows, new_tokens = telemetry["rows"], telemetry["new_tokens"]
            assert isinstance(rows, int)
            assert isinstance(new_tokens, int)
            self._ranks.count(rows, new_tokens)
        self._progress.chunk(chunk, telemetry)

    def follow(self) -> None:
        """Pass on what the other ranks have made since the last time."""
        rows, new_tokens = self._ranks.others()
        if rows:
            self._progress.batch(rows, new_tokens, None)

    def note(self, message: str) -> None:
        self._progress.note(message)
