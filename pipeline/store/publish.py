"""Put a sealed store at its final place: hard links aside, then one rename.

The store stays: DVC deletes an out that it has not recorded yet, so a rename of the store itself
lost everything when ``dvc`` was killed between publish and commit.
"""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path
from typing import Any

from pipeline import atomic
from pipeline.errors import FingerprintError, LockedStoreError, PredictionSetError
from pipeline.local import remove
from pipeline.store import lock
from pipeline.store.card import RUN_CARD, RunCard, differing_inputs
from pipeline.store.chunk import file_sha256
from pipeline.store.prediction_set import SUMS, read_sums


def check_target(
    target: Path, fingerprint: str, inputs: dict[str, Any], *, overwrite: bool
) -> None:
    """Refuse to publish over something that is not ours.

    Raises:
        FingerprintError: ``target`` holds a set of other settings, and not ``overwrite``.
        PredictionSetError: it holds something that is not a prediction set.
    """
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / RUN_CARD).exists():
        raise PredictionSetError(
            f"{target} exists and is not a prediction set; name another folder with "
            "--predictions, or remove it"
        )
    if overwrite:
        return
    theirs = RunCard.read(target)
    if theirs.fingerprint != fingerprint:
        differing = ", ".join(differing_inputs(inputs, theirs.inputs))
        raise FingerprintError(
            f"{target} holds predictions of other settings (differing: {differing}); name "
            "another folder with --predictions, or pass --overwrite to replace them"
        )


def publish(store: Path, target: Path) -> None:
    """Make ``target`` the sealed set in ``store``; nothing happens where it is that already."""
    sums = read_sums(store)
    if sums is None:
        raise PredictionSetError(f"{store} is not sealed")
    if _holds(target, sums):
        return
    for leftover in store.glob(".publish-*"):
        remove(leftover)
    aside = store / f".publish-{uuid.uuid4().hex[:8]}"
    for name in (*sums, SUMS):
        placed = aside / "new" / name
        placed.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(store / name, placed)
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        os.replace(target, aside / "old")
    os.replace(aside / "new", target)
    atomic.sync_folder(target.absolute().parent)
    remove(aside)
    _prune(store)


def _holds(target: Path, sums: dict[str, str]) -> bool:
    try:
        if read_sums(target) != sums:
            return False
        return all(file_sha256(target / name) == sums[name] for name in sums)
    except (OSError, PredictionSetError):
        return False


def _prune(store: Path) -> None:
    """Remove the stores of other settings that were sealed; unfinished ones stay."""
    for other in store.parent.iterdir():
        if other == store or not (other / SUMS).exists():
            continue
        try:
            with lock.hold(other):
                shutil.rmtree(other)
        except LockedStoreError:
            continue


def link_or_copy(source: Path, target: Path) -> None:
    """A hard link, or a copy on another device or a file system without hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
