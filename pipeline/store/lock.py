"""Who may work in a store, and who may seal and publish it.

``kill -9`` of ``dvc`` leaves its predict running, and the next ``dvc repro`` starts a second one on
the same store. So a run *holds* the store; ranks and shards of one run hold it together. What they
must not do at the same time (begin, put a chunk in place, seal, publish) they do one after the
other, each under the *mutex*. Both are locks of the operating system (``flock`` through
portalocker), so they end with the process that has them, however that ends.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import portalocker

from pipeline.errors import LockedStoreError

LOCK = ".lock"
MUTEX = ".mutex"


class Hold:
    """A store that this process holds."""

    def __init__(self, handle: IO[str]) -> None:
        self._handle = handle

    def share(self) -> None:
        """Let other ranks of this run hold the store, too; a second run is still kept out."""
        portalocker.lock(
            self._handle, portalocker.LockFlags.SHARED | portalocker.LockFlags.NON_BLOCKING
        )


@contextmanager
def hold(folder: Path, *, shared: bool = False) -> Iterator[Hold]:
    """Hold the store ``folder`` (made where it is missing), alone or with others that share it.

    Raises:
        LockedStoreError: another process holds it; the message says which.
    """
    handle = _acquire(folder, shared)
    try:
        yield Hold(handle)
    finally:
        portalocker.unlock(handle)
        handle.close()


@contextmanager
def mutex(folder: Path) -> Iterator[None]:
    """Wait until no other process is in here for ``folder``, which must be held. Do not nest."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / MUTEX).open("a", encoding="utf-8") as handle:
        portalocker.lock(handle, portalocker.LockFlags.EXCLUSIVE)
        try:
            yield
        finally:
            portalocker.unlock(handle)


def _acquire(folder: Path, shared: bool) -> IO[str]:
    kind = portalocker.LockFlags.SHARED if shared else portalocker.LockFlags.EXCLUSIVE
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = (folder / LOCK).open("a+", encoding="utf-8")
        except FileNotFoundError:
            continue  # pruned by another process between the two calls
        try:
            portalocker.lock(handle, kind | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.LockException:
            handle.seek(0)
            holder = handle.read().strip() or "another process"
            handle.close()
            raise LockedStoreError(
                f"{folder} is being written by {holder}; wait until it ends, or stop it, "
                "and run the command again: finished chunks are kept"
            ) from None
        try:
            alive = os.path.samestat(os.fstat(handle.fileno()), os.stat(folder / LOCK))
        except FileNotFoundError:
            alive = False
        if alive:
            break
        handle.close()  # the folder was pruned while we waited: take the lock of the new one
    handle.seek(0)
    handle.truncate()
    handle.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    handle.flush()
    return handle
