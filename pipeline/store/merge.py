"""Parts of one run, made on hosts without a shared folder, as one sealed set.

A part is a store or a prediction set, whole or not: a folder with the run card and some chunks.
Everything is checked before anything is written; what is written is a store beside the target, so
that a run with the same settings finds it finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from pipeline.errors import (
    DamagedChunkError,
    FingerprintError,
    MissingChunksError,
    PredictionSetError,
)
from pipeline.store import lock
from pipeline.store.card import RUN_CARD, RunCard, differing_inputs, differing_versions
from pipeline.store.chunk import ChunkReader, chunk_name, file_sha256
from pipeline.store.note import parse_note, telemetry_name
from pipeline.store.place import Folder, Where, open_place
from pipeline.store.prediction_set import TOKENIZER_FILE, PredictionSet, name_chunks
from pipeline.store.publish import PARTIAL
from pipeline.store.telemetry import write_telemetry
from pipeline.store.work import WorkStore


class Part:
    """One of the places to merge.

    Raises:
        PredictionSetError: it holds no run card, or a damaged one.
    """

    def __init__(self, where: Where) -> None:
        self.place = open_place(where)
        if isinstance(self.place, Folder):
            _require_not_of_stores(self.place.path)
        self._set = PredictionSet(self.place)
        self.card = self._set.card
        self.chunks = self._set.present()

    def __str__(self) -> str:
        return str(self.place)

    def telemetry(self, chunk: int) -> dict[str, Any]:
        """What was recorded beside ``chunk``; empty when nothing was."""
        names = (telemetry_name(chunk), f"{PARTIAL}/{telemetry_name(chunk)}")
        found = [name for name in names if name in self._set.sizes]
        return parse_note(self.place.read(found[0])) if found else {}

    def tokenizer(self) -> str | None:
        """What decoding needs, where it is there."""
        there = TOKENIZER_FILE in self._set.sizes
        return self.place.read(TOKENIZER_FILE).decode() if there else None

    def at(self, chunk: int) -> str:
        """The file of ``chunk``, for messages."""
        return self.place.at(chunk_name(chunk))

    def local(self, chunk: int) -> AbstractContextManager[Path]:
        """A path at which ``chunk`` can be opened."""
        return self._set.local_chunk(chunk)

    def check(self, chunk: int) -> str:
        """The sha256 of ``chunk``, which is what was recorded, or else is read from end to end.

        Raises:
            PredictionSetError: it is damaged, or of another run.
        """
        with self.local(chunk) as path:
            sha256 = file_sha256(path)
            recorded = self._set.chunk_sha256(chunk) or self.telemetry(chunk).get("sha256")
            if recorded is not None and sha256 != recorded:
                raise DamagedChunkError(
                    f"{self.at(chunk)} is damaged: its sha256 is not the one that was recorded; "
                    "copy it again, or run that part of `twophase predict` again"
                )
            reader = ChunkReader(path, self.card, chunk, where=self.at(chunk))
        if recorded is None:
            for _ in reader.tables():
                pass
        return sha256


def merge(
    parts: Sequence[Path | str],
    target: Path | str,
    *,
    telemetry: Path | None = None,
    overwrite: bool = False,
    allow_mixed: bool = False,
) -> RunCard:
    """Merge ``parts`` into the prediction set ``target``.

    Args:
        parts: folders or URLs; a chunk may be in several, if it is the same.
        target: folder or URL at which the sealed set is put; its store stays.
        telemetry: CSV to write the parts' time and memory to; None writes none.
        overwrite: replace a set of other settings at ``target``.
        allow_mixed: merge parts that were made under other library versions.

    Raises:
        PredictionSetError: what differs, is damaged or is missing; nothing is written then.
    """
    opened = [Part(part) for part in parts]
    card = _same_run(opened, allow_mixed)
    tokenizer = _same_tokenizer(opened, card)
    chosen = _choose(opened, card)
    store = WorkStore(target, card.fingerprint)
    store.check_target(card.inputs, overwrite=overwrite)
    with store.locked():
        store.sweep(card.chunks)
        store.begin(card, allow_mixed=allow_mixed, overwrite=overwrite)
        if tokenizer is not None:
            store.write_tokenizer(tokenizer)
        for chunk, (part, sha256) in chosen.items():
            with part.local(chunk) as path:
                store.take(chunk, path, {**part.telemetry(chunk), "sha256": sha256})
        with lock.mutex(store.folder):
            store.seal()
            if telemetry is not None:
                write_telemetry(store, telemetry)
            store.publish(overwrite=overwrite)
    return card


def _require_not_of_stores(folder: Path) -> None:
    if not (folder / RUN_CARD).exists() and list(folder.glob(f"{PARTIAL}/*/{RUN_CARD}")):
        (store, *_) = sorted(folder.glob(f"{PARTIAL}/*"))
        raise PredictionSetError(f"{folder} holds stores; name the one to merge, as {store}")


def _same_run(parts: list[Part], allow_mixed: bool) -> RunCard:
    first = parts[0]
    for part in parts[1:]:
        if part.card.fingerprint != first.card.fingerprint:
            differing = ", ".join(differing_inputs(first.card.inputs, part.card.inputs))
            raise FingerprintError(
                f"{part} is of another run than {first} (differing: {differing}); "
                "merge parts of the same settings, model and data"
            )
        changed = differing_versions(first.card, part.card)
        if changed and not allow_mixed:
            raise FingerprintError(
                f"{part} was made under other versions than {first} ({changed}), "
                "which may give other tokens; pass --allow-mixed to merge them nevertheless"
            )
        ours, theirs = msgspec.to_builtins(first.card), msgspec.to_builtins(part.card)
        ours["versions"] = theirs["versions"] = {}
        if ours != theirs:
            names = ", ".join(differing_inputs(ours, theirs))
            raise PredictionSetError(
                f"{part} stores its predictions otherwise than {first} (differing: "
                f"{names}); make one of them again"
            )
    return first.card


def _same_tokenizer(parts: list[Part], card: RunCard) -> str | None:
    if card.prediction == "text":
        return None
    found: tuple[str, str] | None = None
    for part in parts:
        content = part.tokenizer()
        if content is None:
            continue
        path = part.place.at(TOKENIZER_FILE)
        if found is not None and found[1] != content:
            raise PredictionSetError(f"{path} differs from {found[0]}; copy the parts again")
        found = found or (path, content)
    if found is None:
        raise PredictionSetError(
            f"no part has {TOKENIZER_FILE}, which decoding needs; copy it from where they were made"
        )
    return found[1]


def _choose(parts: list[Part], card: RunCard) -> dict[int, tuple[Part, str]]:
    """Chunk -> the first part that has it, and its sha256."""
    chosen: dict[int, tuple[Part, str]] = {}
    for part in parts:
        for chunk in part.chunks:
            sha256 = part.check(chunk)
            other, others = chosen.setdefault(chunk, (part, sha256))
            if others != sha256:
                raise PredictionSetError(
                    f"{other.at(chunk)} and {part.at(chunk)} differ, though both are whole: "
                    "leave one of them out (another device or library version can give other "
                    "tokens)"
                )
    missing = sorted(set(range(card.chunks)) - chosen.keys())
    if missing:
        raise MissingChunksError(
            f"{len(missing)} of {card.chunks} chunks are in no part ({name_chunks(missing)}); name "
            "all parts, or make what is missing with `twophase predict` where the model is"
        )
    return chosen
