"""The store in which predict builds a prediction set, ``.partial/<fingerprint>/``.

DVC deletes a stage's outs before it runs the stage, so the chunks of a run live beside the output
folder, and the finished set is put at its target from here (``target``). What is there has its
final name and is complete; what is missing is what is not there. Several processes (ranks, shards)
may share a store: what they must do one after the other they do under ``lock.mutex``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from pipeline import atomic
from pipeline.errors import FingerprintError, PredictionSetError
from pipeline.local import remove
from pipeline.store import lock
from pipeline.store.card import RUN_CARD, RunCard, differing_versions
from pipeline.store.chunk import chunk_index, chunk_name, file_sha256, write_chunk_atomically
from pipeline.store.note import read_note, telemetry_name
from pipeline.store.prediction_set import (
    SUMS,
    TOKENIZER_FILE,
    PredictionSet,
    format_sums,
    read_sums,
)
from pipeline.store.publish import link_or_copy, sweep
from pipeline.store.target import open_target


class WorkStore:
    """The store of one run.

    Args:
        predictions: folder or URL at which the finished set is put.
        fingerprint: of the run; it names the store.
    """

    def __init__(self, predictions: Path | str, fingerprint: str) -> None:
        self.target = open_target(predictions)
        self.fingerprint = fingerprint
        self.folder = self.target.stores / fingerprint

    @property
    def card(self) -> RunCard:
        """The run card of this store; an error where the run has not begun or it is damaged."""
        return RunCard.read(self.folder)

    @contextmanager
    def locked(self, *, shared: bool = False) -> Iterator[lock.Hold]:
        """Hold the store; see ``lock.hold``."""
        with lock.hold(self.folder, shared=shared) as hold:
            yield hold

    def begin(self, card: RunCard, *, allow_mixed: bool = False, overwrite: bool = False) -> None:
        """Write ``card``, but keep the versions of one that is there; see ``Target.begin``, too.

        What else a card holds follows from the settings and the model, so one that differs was
        altered or damaged, and is mended.

        Raises:
            FingerprintError: the store was begun under other library versions (they can change a
                token) and ``allow_mixed`` is off.
        """
        with lock.mutex(self.folder):
            try:
                begun = self.card
            except PredictionSetError:  # there is none, or it cannot be read
                begun = card
            mended = msgspec.structs.replace(card, versions=begun.versions)
            if not self.begun or mended.to_bytes() != (self.folder / RUN_CARD).read_bytes():
                mended.write(self.folder)
        _require_same_versions(str(self.folder), begun, card, allow_mixed)
        # Another machine may have been first.
        stands = self.target.begin(mended, overwrite=overwrite)
        if stands.versions != mended.versions:
            stands.write(self.folder)
        _require_same_versions(str(self.target), stands, card, allow_mixed)

    def discard(self) -> None:
        """Remove all that the store holds (``--overwrite``), but not the locks."""
        for entry in self.folder.iterdir():
            if entry.name not in (lock.LOCK, lock.MUTEX):
                remove(entry)

    def sweep(self, chunks: int) -> None:
        """Remove what killed processes left half-written, and what is no chunk of this run.

        The store must be held alone; ``chunks`` is how many the run has.
        """
        for pattern in (f".*{atomic.TEMPORARY_MARK}*", f"*/.*{atomic.TEMPORARY_MARK}*"):
            for entry in self.folder.glob(pattern):
                remove(entry)
        sweep(self.folder)
        for chunk in self.present():
            if chunk >= chunks:
                remove(self.folder / chunk_name(chunk))

    def forget(self) -> None:
        """Remove a store in which nothing was begun; it must be held alone."""
        if {entry.name for entry in self.folder.iterdir()} <= {lock.LOCK, lock.MUTEX}:
            remove(self.folder)

    @property
    def begun(self) -> bool:
        """Whether the store has its run card."""
        return (self.folder / RUN_CARD).exists()

    @property
    def sealed(self) -> bool:
        """Whether the set is finished."""
        return (self.folder / SUMS).exists()

    @property
    def has_tokenizer(self) -> bool:
        """Whether what decoding needs is there, or nothing is needed."""
        try:
            return self.card.prediction == "text" or (self.folder / TOKENIZER_FILE).exists()
        except PredictionSetError:  # begin mends the card, with the engine at hand
            return False

    def present(self) -> set[int]:
        """Chunks that have their final name; the run need not have begun."""
        if not self.folder.is_dir():
            return set()
        found = {chunk_index(entry.name) for entry in self.folder.iterdir()}
        return {chunk for chunk in found if chunk is not None}

    def missing(self, chunks: Iterable[int] | None = None) -> list[int]:
        """Which of ``chunks`` (None is all) are to be made, ascending; the run must have begun.

        A chunk that is there is hashed and compared with what was recorded when it was written;
        one that differs is removed, so that it alone is made again. A seal that does not hold
        goes too, and with it the tokenizer, since one of the two was altered: the engine writes
        that and the card anew.
        """
        missing = self.lacking(chunks)
        altered = self.sealed and not self._seal_holds()
        if missing or altered:
            with lock.mutex(self.folder):
                missing = self.lacking(missing)
                for chunk in missing:
                    remove(self.folder / chunk_name(chunk))
                if missing or altered:
                    remove(self.folder / SUMS)
                if altered:
                    remove(self.folder / TOKENIZER_FILE)
        return missing

    def _seal_holds(self) -> bool:
        """Whether the seal is what sealing now would write; chunks are not hashed again."""
        try:
            return read_sums(self.folder) == self._sums()
        except PredictionSetError:
            return False

    def _sums(self) -> dict[str, str]:
        sums = {
            chunk_name(chunk): self.telemetry(chunk).get("sha256", "")
            for chunk in range(self.card.chunks)
        }
        for name in (RUN_CARD, TOKENIZER_FILE):
            if (self.folder / name).exists():
                sums[name] = file_sha256(self.folder / name)
        return sums

    def lacking(self, chunks: Iterable[int] | None = None) -> list[int]:
        """What ``missing`` says, without changing anything."""
        wanted = range(self.card.chunks) if chunks is None else chunks
        return [chunk for chunk in wanted if not self._intact(chunk)]

    def _intact(self, chunk: int) -> bool:
        path = self.folder / chunk_name(chunk)
        recorded = self.telemetry(chunk).get("sha256")
        return path.is_file() and recorded is not None and file_sha256(path) == recorded

    def write(self, chunk: int, table: pa.Table, telemetry: Mapping[str, Any]) -> None:
        """Write a chunk; its telemetry and sha256 are there before it has its final name."""
        path = self.folder / chunk_name(chunk)
        staged = atomic.temporary_path(path)
        sha256 = write_chunk_atomically(staged, table, self.card, chunk)
        with lock.mutex(self.folder):
            self._record(chunk, {**telemetry, "sha256": sha256})
            os.replace(staged, path)
        atomic.sync_folder(self.folder)

    def telemetry(self, chunk: int) -> dict[str, Any]:
        """What was recorded beside ``chunk``; empty when nothing (readable) was."""
        return self.note(telemetry_name(chunk))

    def _record(self, chunk: int, entries: Mapping[str, Any]) -> None:
        self.write_note(telemetry_name(chunk), {"chunk": chunk, **entries})

    def note(self, name: str) -> dict[str, Any]:
        """A JSON object kept beside the chunks while the run lasts; empty where there is none."""
        return read_note(self.folder / name)

    def write_note(self, name: str, entries: Mapping[str, Any]) -> None:
        """Write what ``note`` reads, atomically."""
        atomic.write_text(self.folder / name, json.dumps(entries, indent=1) + "\n")

    def write_tokenizer(self, content: str) -> None:
        """Write ``tokenizer/tokenizer.json``."""
        atomic.write_text(self.folder / TOKENIZER_FILE, content)

    def take(self, chunk: int, source: Path, entries: Mapping[str, Any]) -> None:
        """Take over a chunk made elsewhere; ``entries`` are its telemetry, with its sha256."""
        path = self.folder / chunk_name(chunk)
        staged = atomic.temporary_path(path)
        link_or_copy(source, staged)
        with lock.mutex(self.folder):
            self._record(chunk, entries)
            os.replace(staged, path)
            remove(staged)  # a rename onto a link to the same file leaves both names

    def adopt(self, chunks: Iterable[int] | None = None) -> int:
        """Take over what the target holds of this very run; see ``Target.adopt``."""
        return self.target.adopt(self, chunks)

    def seal(self) -> None:
        """Write ``SHA256SUMS`` over card, chunks and tokenizer.

        Raises:
            MissingChunksError: a chunk is missing.
        """
        PredictionSet(self.folder).require_complete()
        atomic.write_text(self.folder / SUMS, format_sums(self._sums()))

    def check_target(self, inputs: dict[str, Any], *, overwrite: bool) -> None:
        """Refuse to publish over something that is not ours; see ``Target.check``."""
        self.target.check(self.fingerprint, inputs, overwrite=overwrite)

    def publish(self, *, overwrite: bool = False) -> None:
        """Put the sealed set at the target; see ``Target.publish``."""
        # One run at a time: two of other settings must not replace each other unasked.
        with lock.mutex(self.folder.parent):
            self.check_target(self.card.inputs, overwrite=overwrite)
            self.target.publish(self)


def _require_same_versions(where: str, begun: RunCard, now: RunCard, allow_mixed: bool) -> None:
    changed = differing_versions(begun, now)
    if changed and not allow_mixed:
        raise FingerprintError(
            f"{where} was begun under other versions ({changed}), which may give other tokens: "
            "install those versions, or pass --allow-mixed to go on, or --overwrite to start anew"
        )
