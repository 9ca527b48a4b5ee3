"""A URL as the target of a run: chunks are put in place as they are complete, the seal last.

    run.json                        first, and never replaced by that of another run
    .partial/telemetry-00000.json   telemetry and sha256 of a chunk, before it; gone when sealed
    tokenizer/tokenizer.json
    chunk-00000.parquet             whole
    SHA256SUMS                      last

A chunk counts that is listed, and whose bytes have the sha256 that was recorded beside it (or in
the seal). So a run goes on on any machine: it takes over what it finds, into its store there, and
the one that finds everything seals. There is no lock across machines: two runs of the same
settings make the same bytes, and one of other settings finds ``run.json`` and refuses.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import atomic
from pipeline.errors import FingerprintError, ObjectStoreError, PredictionSetError, listed
from pipeline.store.card import RUN_CARD, RunCard, differing_versions
from pipeline.store.chunk import chunk_index, chunk_name, file_sha256
from pipeline.store.note import parse_note, telemetry_name
from pipeline.store.prediction_set import SUMS, TOKENIZER_FILE, PredictionSet, read_sums
from pipeline.store.publish import PARTIAL
from pipeline.store.target import require_same_run
from pipeline.store.url import Url

if TYPE_CHECKING:
    from pipeline.store.work import WorkStore

# Beside the default of --predictions: not versioned, and not watched by DVC.
STORES = Path("data") / PARTIAL


@dataclass(frozen=True)
class UrlTarget:
    """See ``target.Target``.

    Raises:
        ObjectStoreError: the URL cannot be read or written; in every method.
    """

    place: Url

    def __str__(self) -> str:
        return str(self.place)

    @property
    def stores(self) -> Path:
        return STORES.absolute()

    def check(self, fingerprint: str, inputs: dict[str, Any], *, overwrite: bool) -> None:
        sizes = self.place.sizes()
        if RUN_CARD not in sizes:
            foreign = sorted(name for name in sizes if not _is_passing(name))
            if foreign:
                raise PredictionSetError(
                    f"{self} holds {listed(foreign, 3)}, and no {RUN_CARD}: it is not a "
                    "prediction set; name another URL, or remove what is there"
                )
            return
        if not overwrite:
            require_same_run(self.place, RunCard.read(self.place), fingerprint, inputs)

    def begin(self, card: RunCard, *, overwrite: bool = False) -> RunCard:
        if overwrite:
            self._clear()
        try:
            self.place.write(RUN_CARD, card.to_bytes(), new=True)
        except FileExistsError:
            return self._require_ours(card)
        return card

    def find_card(self, store: WorkStore) -> None:
        if not store.begun and RUN_CARD in self.place.sizes():
            self._take_card(store)

    def holds(self, fingerprint: str) -> set[int]:
        sizes = self.place.sizes()
        if RUN_CARD not in sizes or RunCard.read(self.place).fingerprint != fingerprint:
            return set()
        return {chunk for chunk in map(chunk_index, sizes) if chunk is not None}

    def adopt(self, store: WorkStore, chunks: Iterable[int] | None = None) -> int:
        sizes = self.place.sizes()
        if RUN_CARD not in sizes:
            return 0
        card = RunCard.read(self.place)
        if card.fingerprint != store.fingerprint:
            return 0
        if not store.begun:
            self._take_card(store)
        if store.begun and not store.has_tokenizer and TOKENIZER_FILE in sizes:
            content = self.place.read(TOKENIZER_FILE)
            if self._is_as_sealed(TOKENIZER_FILE, content):
                store.write_tokenizer(content.decode())
        wanted = range(card.chunks) if chunks is None else chunks
        here = store.present()
        there = [chunk for chunk in wanted if chunk_name(chunk) in sizes and chunk not in here]
        adopted = 0
        for chunk, entries in self._recorded(there, sizes).items():
            with self.place.local(chunk_name(chunk)) as path:
                intact = file_sha256(path) == entries["sha256"]
                if intact:
                    store.take(chunk, path, entries)
                    adopted += 1
            if not intact:  # so that it alone is made again
                self.place.remove([SUMS, chunk_name(chunk)])
        return adopted

    def gather(self, store: WorkStore) -> None:
        names = self.place.sizes().keys() | {chunk_name(chunk) for chunk in store.present()}
        if store.begun and names >= set(map(chunk_name, range(store.card.chunks))):
            self.adopt(store)

    def put(self, store: WorkStore, chunk: int) -> None:
        self._require_ours(store.card)
        entries = {"chunk": chunk, **store.telemetry(chunk)}
        self.place.write(_note(chunk), json.dumps(entries).encode())
        self.place.put(chunk_name(chunk), store.folder / chunk_name(chunk))

    def deliver(self, store: WorkStore, chunks: Iterable[int]) -> None:
        self.begin(store.card)
        sizes = self.place.sizes()
        present = store.present()
        here = [chunk for chunk in chunks if chunk in present]
        there = self._recorded([chunk for chunk in here if chunk_name(chunk) in sizes], sizes)
        lacking = [
            chunk
            for chunk in here
            if there.get(chunk, {}).get("sha256") != store.telemetry(chunk).get("sha256")
            or sizes[chunk_name(chunk)] != (store.folder / chunk_name(chunk)).stat().st_size
        ]
        if lacking and SUMS in sizes:  # what it seals is not whole
            self.place.remove([SUMS])
        if TOKENIZER_FILE not in sizes and (store.folder / TOKENIZER_FILE).exists():
            self.place.put(TOKENIZER_FILE, store.folder / TOKENIZER_FILE)
        for chunk in lacking:
            self.put(store, chunk)

    def publish(self, store: WorkStore) -> None:
        card = store.card
        changed = differing_versions(self.begin(card), card)
        if changed:
            raise FingerprintError(
                f"{self} was begun under other versions than {store.folder} ({changed}); name "
                "another URL, or pass --overwrite to start anew"
            )
        self.deliver(store, range(card.chunks))
        sizes = self.place.sizes()
        small = [name for name in (RUN_CARD, TOKENIZER_FILE) if (store.folder / name).exists()]
        altered = [name for name in small if not self._is_there(store, name, sizes)]
        # Of a run that was replaced while it was putting them there.
        stray = [name for name in sizes if (chunk_index(name) or 0) >= card.chunks]
        if altered or stray or not self._is_there(store, SUMS, sizes):
            self.place.remove([SUMS, *stray])
            for name in altered:
                self.place.write(name, (store.folder / name).read_bytes())
            self.place.write(SUMS, (store.folder / SUMS).read_bytes())
        self.place.remove(name for name in sizes if _is_passing(name))

    def upload(self, folder: Path, *, overwrite: bool = False) -> None:
        """Put the sealed set in ``folder``, which has no store, here."""
        source = PredictionSet(folder)
        assert source.sums is not None
        self.begin(source.card, overwrite=overwrite)
        for name in (*source.sums, SUMS):
            if name != RUN_CARD:
                self.place.put(name, folder / name)

    def _require_ours(self, card: RunCard) -> RunCard:
        """The card that is there; an error where another run has taken the URL."""
        theirs = RunCard.read(self.place)
        require_same_run(self.place, theirs, card.fingerprint, card.inputs)
        return theirs

    def _clear(self) -> None:
        """Remove the set that is there: the seal first, the run card last."""
        sizes = self.place.sizes()
        chunks = [name for name in sizes if chunk_index(name) is not None]
        passing = [name for name in sizes if _is_passing(name)]
        names = (SUMS, *chunks, TOKENIZER_FILE, *passing, RUN_CARD)
        self.place.remove(name for name in names if name in sizes)

    def _is_there(self, store: WorkStore, name: str, sizes: dict[str, int]) -> bool:
        """Whether a small file stands there as in ``store``."""
        return name in sizes and self.place.read(name) == (store.folder / name).read_bytes()

    def _is_as_sealed(self, name: str, content: bytes) -> bool:
        """Whether a file is what the seal says; so it is where there is none."""
        sums = self._sums()
        return sums is None or sums.get(name) == hashlib.sha256(content).hexdigest()

    def _sums(self) -> dict[str, str] | None:
        """The seal; None where there is none, or one that is damaged."""
        try:
            return read_sums(self.place)
        except ObjectStoreError:
            raise
        except PredictionSetError:
            return None

    def _take_card(self, store: WorkStore) -> None:
        card = RunCard.read(self.place)
        if not self._is_as_sealed(RUN_CARD, self.place.read(RUN_CARD)):
            return  # the engine makes it anew
        if card.fingerprint == store.fingerprint:
            store.folder.mkdir(parents=True, exist_ok=True)
            card.write(store.folder)

    def _recorded(self, chunks: list[int], sizes: dict[str, int]) -> dict[int, dict[str, Any]]:
        """Chunk -> what was recorded beside it, with its sha256; those without one are left out."""
        sums = self._sums() if SUMS in sizes else None
        if sums is not None:
            found = {chunk: {"sha256": sums.get(chunk_name(chunk))} for chunk in chunks}
        else:
            noted = [chunk for chunk in chunks if _note(chunk) in sizes]
            notes = self.place.read_all(map(_note, noted))
            found = {chunk: parse_note(notes[_note(chunk)]) for chunk in noted}
        return {chunk: entries for chunk, entries in found.items() if entries.get("sha256")}


def _note(chunk: int) -> str:
    return f"{PARTIAL}/{telemetry_name(chunk)}"


def _is_passing(name: str) -> bool:
    """Whether a file is there only while a run lasts."""
    return name.startswith(f"{PARTIAL}/") or atomic.TEMPORARY_MARK in name
