"""``scores/`` is replaced as a whole, or not at all.

The new folder is made beside the old one and renamed when it is complete, so that a run that is
killed or fails leaves the scores that were there. What it leaves beside them is removed by the next
run: each such folder is locked while its run lives.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline import atomic
from pipeline.errors import LockedStoreError, ScoresError
from pipeline.store import lock

SUMMARY = "summary.json"


@contextmanager
def replacing(scores: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``scores`` when the block ends without an error.

    Raises:
        ScoresError: ``scores`` holds something else than scores, or cannot be written.
    """
    check_target(scores)
    scores = scores.absolute()
    try:
        scores.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(scores)
        aside = atomic.temporary_path(scores)
        with lock.hold(aside):
            try:
                new = aside / "new"
                new.mkdir()
                yield new
                if scores.exists():
                    os.replace(scores, aside / "old")
                os.replace(new, scores)
                atomic.sync_folder(scores.parent)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise ScoresError(
            f"{scores} cannot be written: {error}; the scores that were there are untouched"
        ) from error


def check_target(scores: Path) -> None:
    """Refuse to replace what is not scores.

    Raises:
        ScoresError: ``scores`` is a file, or a folder with content but without ``summary.json``.
    """
    if not scores.exists() or (scores / SUMMARY).exists():
        return
    if not scores.is_dir() or any(scores.iterdir()):
        raise ScoresError(
            f"{scores} exists and holds no {SUMMARY}, so it is not a folder of scores and is not "
            "replaced; name another one with --scores, or remove it"
        )


def _remove_stale(scores: Path) -> None:
    for aside in scores.parent.glob(f".{scores.name}{atomic.TEMPORARY_MARK}*"):
        try:
            with lock.hold(aside):
                shutil.rmtree(aside, ignore_errors=True)
        except LockedStoreError:
            continue  # its run is alive
