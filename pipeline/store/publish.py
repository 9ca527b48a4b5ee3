"""A folder as the target of a run: hard links aside, then one rename.

The store stays: DVC deletes an out that it has not recorded yet, so a rename of the store itself
lost everything when ``dvc`` was killed between publish and commit.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import atomic
from pipeline.errors import LockedStoreError, PredictionSetError
from pipeline.local import remove
from pipeline.store import lock
from pipeline.store.card import RUN_CARD, RunCard
from pipeline.store.chunk import chunk_index, file_sha256
from pipeline.store.place import Folder
from pipeline.store.prediction_set import SUMS, TOKENIZER_FOLDER, PredictionSet, read_sums
from pipeline.store.target import require_same_run

if TYPE_CHECKING:
    from pipeline.store.work import WorkStore

PARTIAL = ".partial"
# What a prediction set holds beside its chunks, and what file browsers leave in any folder.
_PARTS = {RUN_CARD, SUMS, TOKENIZER_FOLDER, ".DS_Store", "Thumbs.db"}


@dataclass(frozen=True)
class FolderTarget:
    """See ``target.Target``: nothing happens here before the set is whole."""

    path: Path

    @classmethod
    def at(cls, path: Path) -> FolderTarget:
        """The folder that ``path`` means; see ``followed``."""
        return cls(followed(path))

    def __str__(self) -> str:
        return str(self.path)

    @property
    def place(self) -> Folder:
        return Folder(self.path)

    @property
    def stores(self) -> Path:
        return self.path.parent / PARTIAL

    def check(self, fingerprint: str, inputs: dict[str, Any], *, overwrite: bool) -> None:
        check_target(self.path, fingerprint, inputs, overwrite=overwrite)

    def begin(self, card: RunCard, *, overwrite: bool = False) -> RunCard:
        return card

    def find_card(self, store: WorkStore) -> None:
        pass

    def holds(self, fingerprint: str) -> set[int]:
        published = self._published(fingerprint)
        return set() if published is None else set(published.present())

    def adopt(self, store: WorkStore, chunks: Iterable[int] | None = None) -> int:
        """See ``Target.adopt``.

        A set that came by rsync has no store beside it: with one chunk damaged, the others need
        not be made again.
        """
        published = self._published(store.fingerprint)
        if published is None or published.sums is None:
            return 0
        adopted = 0
        for name, sha256 in published.sums.items():
            source, target = self.path / name, store.folder / name
            if target.exists() or not source.is_file() or file_sha256(source) != sha256:
                continue
            chunk = chunk_index(name)
            if chunk is None:  # card and tokenizer: PredictionSet has seen to the names
                atomic.write_bytes(target, source.read_bytes())
            else:
                store.take(chunk, source, {"sha256": sha256})
                adopted += 1
        return adopted

    def gather(self, store: WorkStore) -> None:
        pass

    def put(self, store: WorkStore, chunk: int) -> None:
        pass

    def deliver(self, store: WorkStore, chunks: Iterable[int]) -> None:
        pass

    def publish(self, store: WorkStore) -> None:
        publish(store.folder, self.path)

    def _published(self, fingerprint: str) -> PredictionSet | None:
        """The sealed set of this run that stands here."""
        try:
            published = PredictionSet(self.path)
        except PredictionSetError:
            return None
        same = published.card.fingerprint == fingerprint and published.sealed
        return published if same else None


def check_target(
    target: Path, fingerprint: str, inputs: dict[str, Any], *, overwrite: bool
) -> None:
    """Refuse to publish over something that is not ours.

    Raises:
        FingerprintError: ``target`` holds a set of other settings, and not ``overwrite``.
        PredictionSetError: it holds something that is not part of a prediction set, or cannot be
            put in place by a rename.
    """
    if target == Path.cwd() or os.path.ismount(target):
        raise PredictionSetError(
            f"{target} cannot be replaced as a whole, being "
            f"{'a mount point' if os.path.ismount(target) else 'the current folder'}; name a "
            "folder in it with --predictions"
        )
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / RUN_CARD).exists():
        raise PredictionSetError(
            f"{target} exists and is not a prediction set; name another folder with "
            "--predictions, or remove it"
        )
    foreign = sorted(
        entry.name
        for entry in target.iterdir()
        if entry.name not in _PARTS and chunk_index(entry.name) is None
    )
    if foreign:
        raise PredictionSetError(
            f"{target} holds {foreign[0]}, which is not part of a prediction set and would be "
            "lost; move it away, or name another folder with --predictions"
        )
    if overwrite:
        return
    require_same_run(Folder(target), RunCard.read(target), fingerprint, inputs)


def followed(target: Path) -> Path:
    """The absolute path that ``target`` means; a link is followed, since the disk is there.

    Raises:
        PredictionSetError: a link that leads to itself.
    """
    if not target.is_symlink():
        return Path(os.path.abspath(target))
    try:
        return target.resolve()
    except (RuntimeError, OSError):
        raise PredictionSetError(f"{target} is a link that leads to itself; remove it") from None


def sweep(store: Path) -> None:
    """Remove what a killed publish left."""
    for leftover in store.glob(".publish-*"):
        remove(leftover)


def publish(store: Path, target: Path) -> None:
    """Make ``target`` the sealed set in ``store``; nothing happens where it is that already."""
    sums = read_sums(store)
    if sums is None:
        raise PredictionSetError(f"{store} is not sealed")
    if _holds(target, sums):
        return
    aside = store / f".publish-{uuid.uuid4().hex[:8]}"
    for name in (*sums, SUMS):
        placed = aside / "new" / name
        placed.parent.mkdir(parents=True, exist_ok=True)
        if chunk_index(name) is None:
            # Copied: an edit of the published card must not reach the store.
            shutil.copyfile(store / name, placed)
        else:
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
