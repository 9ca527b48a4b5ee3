"""One run at a time in a store.

``kill -9`` of ``dvc`` leaves its predict running, and the next ``dvc repro`` starts a second one on
the same store. The lock is the operating system's (``flock`` through portalocker), so it ends with
the process that holds it, however that ends. Ranks and shards of one run take it shared.
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


@contextmanager
def hold(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock of ``folder`` (made where it is missing).

    Raises:
        LockedStoreError: another process holds it; the message says which.
    """
    handle = _acquire(folder, shared)
    try:
        yield
    finally:
        portalocker.unlock(handle)
        handle.close()


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
