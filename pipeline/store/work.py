"""The store in which predict builds a prediction set, ``.partial/<fingerprint>/``.

DVC deletes a stage's outs before it runs the stage, so the chunks of a run live beside the output
folder, and the finished set is *published*: hard links in a temporary folder that is renamed to
its final name. The store stays, because DVC also deletes an out that it has not recorded yet
(killed between publish and commit, a rename alone lost everything). What is there has its final
name and is complete; what is missing is what is not there.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline import atomic
from pipeline.errors import FingerprintError, LockedStoreError, PredictionSetError
from pipeline.store import lock
from pipeline.store.card import RUN_CARD, RunCard, differing_inputs
from pipeline.store.chunk import chunk_name, file_sha256, write_chunk_atomically
from pipeline.store.prediction_set import (
    SUMS,
    TOKENIZER_FILE,
    PredictionSet,
    format_sums,
    read_sums,
)

PARTIAL = ".partial"


class WorkStore:
    """The store of one run.

    Args:
        predictions: where the finished set is published.
        fingerprint: of the run; it names the store.
    """

    def __init__(self, predictions: Path, fingerprint: str) -> None:
        self.predictions = predictions
        self.fingerprint = fingerprint
        self.folder = predictions.absolute().parent / PARTIAL / fingerprint

    @property
    def card(self) -> RunCard:
        """The run card of this store; an error where the run has not begun or it is damaged."""
        return RunCard.read(self.folder)

    @contextmanager
    def locked(self, *, shared: bool = False) -> Iterator[None]:
        """Hold the store; see ``lock.hold``."""
        with lock.hold(self.folder, shared=shared):
            yield

    def begin(self, card: RunCard, *, allow_mixed: bool = False) -> None:
        """Write ``card``, or check that the one that is there is the same.

        Raises:
            FingerprintError: the store was begun under other library versions (they can change a
                token) and ``allow_mixed`` is off.
            PredictionSetError: the card that is there is damaged.
        """
        if not self.begun:
            card.write(self.folder)
            return
        begun = self.card.versions
        changed = [
            f"{name} {begun.get(name, 'none')} → {card.versions.get(name, 'none')}"
            for name in sorted(begun.keys() | card.versions.keys())
            if begun.get(name) != card.versions.get(name)
        ]
        if changed and not allow_mixed:
            raise FingerprintError(
                f"{self.folder} was begun under other versions ({', '.join(changed)}), which may "
                "give other tokens: install those versions, or pass --allow-mixed to go on, or "
                "--overwrite to start anew"
            )

    def discard(self) -> None:
        """Remove all that the store holds (``--overwrite``), but not the lock that is held."""
        for entry in self.folder.iterdir():
            if entry.name != lock.LOCK:
                _remove(entry)

    @property
    def begun(self) -> bool:
        """Whether the store has its run card."""
        return (self.folder / RUN_CARD).exists()

    @property
    def sealed(self) -> bool:
        """Whether the set is finished."""
        return (self.folder / SUMS).exists()

    def missing(self) -> list[int]:
        """Chunks to make, ascending; the run must have begun.

        A chunk that is there is hashed and compared with what was recorded when it was written;
        one that differs is removed, so that it alone is made again. The seal of a set that
        misses a chunk, or whose tokenizer was altered, is removed too.
        """
        missing = [chunk for chunk in range(self.card.chunks) if not self._intact(chunk)]
        for chunk in missing:
            (self.folder / chunk_name(chunk)).unlink(missing_ok=True)
        tokenizer = self.folder / TOKENIZER_FILE
        recorded = (read_sums(self.folder) or {}).get(TOKENIZER_FILE)
        altered = recorded and not (tokenizer.exists() and file_sha256(tokenizer) == recorded)
        if missing or altered:
            (self.folder / SUMS).unlink(missing_ok=True)
        return missing

    def _intact(self, chunk: int) -> bool:
        path = self.folder / chunk_name(chunk)
        recorded = self.telemetry(chunk).get("sha256")
        return path.exists() and recorded is not None and file_sha256(path) == recorded

    def write(self, chunk: int, table: pa.Table, telemetry: Mapping[str, Any]) -> None:
        """Write a chunk; its telemetry and sha256 are there before it has its final name."""
        path = self.folder / chunk_name(chunk)
        staged = self.folder / f".staged-{chunk_name(chunk)}"
        sha256 = write_chunk_atomically(staged, table, self.card, chunk)
        self._record(chunk, {"chunk": chunk, **telemetry, "sha256": sha256})
        os.replace(staged, path)
        atomic.sync_folder(self.folder)

    def _telemetry_path(self, chunk: int) -> Path:
        return self.folder / f"telemetry-{chunk:05d}.json"

    def _record(self, chunk: int, entries: Mapping[str, Any]) -> None:
        atomic.write_text(self._telemetry_path(chunk), json.dumps(entries, indent=1) + "\n")

    def telemetry(self, chunk: int) -> dict[str, Any]:
        """What was recorded beside ``chunk``; empty when nothing (readable) was."""
        try:
            entries = json.loads(self._telemetry_path(chunk).read_bytes())
        except (OSError, ValueError):
            return {}
        return entries if isinstance(entries, dict) else {}

    def write_tokenizer(self, content: str) -> None:
        """Write ``tokenizer/tokenizer.json``."""
        atomic.write_text(self.folder / TOKENIZER_FILE, content)

    def adopt(self) -> int:
        """Take over the intact chunks of a published set of this very run; return how many.

        A set that came by rsync has no store beside it: with one chunk damaged, the others need
        not be made again.
        """
        try:
            published = PredictionSet(self.predictions)
        except PredictionSetError:
            return 0
        if published.card.fingerprint != self.fingerprint or published.sums is None:
            return 0
        adopted = 0
        for name, sha256 in published.sums.items():
            source, target = self.predictions / name, self.folder / name
            if target.exists() or not source.exists() or file_sha256(source) != sha256:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(source, target)
            if name.startswith("chunk-"):
                chunk = int(name.removeprefix("chunk-").removesuffix(".parquet"))
                self._record(chunk, {"chunk": chunk, "sha256": sha256})
                adopted += 1
        return adopted

    def seal(self) -> None:
        """Write ``SHA256SUMS`` over card, chunks and tokenizer.

        Raises:
            MissingChunksError: a chunk is missing.
        """
        PredictionSet(self.folder).require_complete()
        chunks = range(self.card.chunks)
        sums = {chunk_name(chunk): self.telemetry(chunk)["sha256"] for chunk in chunks}
        for name in (RUN_CARD, TOKENIZER_FILE):
            if (self.folder / name).exists():
                sums[name] = file_sha256(self.folder / name)
        atomic.write_text(self.folder / SUMS, format_sums(sums))

    def check_target(self, inputs: dict[str, Any], *, overwrite: bool) -> None:
        """Refuse to publish over something that is not ours.

        Raises:
            FingerprintError: ``predictions`` holds a set of other settings, and not ``overwrite``.
            PredictionSetError: it holds something that is not a prediction set.
        """
        target = self.predictions
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
        if theirs.fingerprint != self.fingerprint:
            differing = ", ".join(differing_inputs(inputs, theirs.inputs))
            raise FingerprintError(
                f"{target} holds predictions of other settings (differing: {differing}); name "
                "another folder with --predictions, or pass --overwrite to replace them"
            )

    def publish(self) -> None:
        """Put the sealed set at ``predictions``: linked aside, then renamed in one step."""
        sums = read_sums(self.folder)
        if sums is None:
            raise PredictionSetError(f"{self.folder} is not sealed")
        if self._is_published(sums):
            return
        for leftover in self.folder.glob(".publish-*"):
            _remove(leftover)
        aside = self.folder / f".publish-{uuid.uuid4().hex[:8]}"
        for name in (*sums, SUMS):
            target = aside / "new" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(self.folder / name, target)
        self.predictions.absolute().parent.mkdir(parents=True, exist_ok=True)
        if self.predictions.exists():
            os.replace(self.predictions, aside / "old")
        os.replace(aside / "new", self.predictions)
        atomic.sync_folder(self.predictions.absolute().parent)
        _remove(aside)
        self._prune()

    def _is_published(self, sums: dict[str, str]) -> bool:
        try:
            if read_sums(self.predictions) != sums:
                return False
            return all(file_sha256(self.predictions / name) == sums[name] for name in sums)
        except (OSError, PredictionSetError):
            return False

    def _prune(self) -> None:
        """Remove the stores of other settings that were sealed; unfinished ones stay."""
        for other in self.folder.parent.iterdir():
            if other == self.folder or not (other / SUMS).exists():
                continue
            try:
                with lock.hold(other):
                    shutil.rmtree(other)
            except LockedStoreError:
                continue


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another device, or a file system without hard links
        shutil.copy2(source, target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
