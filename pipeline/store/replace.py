"""A folder is replaced as a whole, or not at all.

The new one is made beside the old one and renamed when it is complete, so that a run that is killed
or fails leaves what was there. What it leaves beside it is removed by the next run: each such
folder is locked while its run lives.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline import atomic
from pipeline.errors import LockedStoreError
from pipeline.store import lock

NEW = "new"


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``target`` when the block ends without an error.

    Its parent is a scratch folder on the same disk, removed at the end.

    Raises:
        OSError: the folder cannot be written or renamed.
    """
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(target)
    aside = atomic.temporary_path(target)
    with lock.hold(aside):
        try:
            new = aside / NEW
            new.mkdir()
            yield new
            if target.exists():
                os.replace(target, aside / "old")
            os.replace(new, target)
            atomic.sync_folder(target.parent)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _remove_stale(target: Path) -> None:
    for aside in target.parent.glob(f".{target.name}{atomic.TEMPORARY_MARK}*"):
        try:
            with lock.hold(aside):
                shutil.rmtree(aside, ignore_errors=True)
        except LockedStoreError:
            continue  # its run is alive
