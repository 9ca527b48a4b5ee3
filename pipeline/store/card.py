"""``run.json``: what was asked of phase one, written before the first chunk and never changed.

The fingerprint is the sha256 of ``inputs``, which are kept in clear beside it: all that was
requested and can change a token. No device, host or time is in the card, so that the same
request is the same bytes anywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

from pipeline import atomic
from pipeline.errors import PredictionSetError
from pipeline.schema import SCHEMA_VERSION
from pipeline.store.place import Where, open_place

RUN_CARD = "run.json"


class DecodeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How phase two turns ids into text, as ``PreTrainedTokenizer.decode`` names it."""

    skip_special_tokens: bool = True
    clean_up_tokenization_spaces: bool = False


class RunCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of ``run.json``."""

    schema_version: int
    fingerprint: str
    inputs: dict[str, Any]
    first_row: int = 0  # of the data set; not 0 where the set is of a slice of it
    rows: int  # in this set
    chunk_rows: int
    chunks: int
    prediction: Literal["ids", "text"]
    decode: DecodeOptions
    optional: tuple[str, ...]  # which of schema.OPTIONAL_FIELDS the chunks hold
    keep: tuple[str, ...]  # the kept columns the chunks hold
    versions: dict[str, str]

    @classmethod
    def plan(
        cls,
        *,
        inputs: dict[str, Any],
        rows: int,
        chunk_rows: int,
        versions: dict[str, str],
        prediction: Literal["ids", "text"] = "ids",
        decode: DecodeOptions | None = None,
        optional: tuple[str, ...] = (),
        keep: tuple[str, ...] = (),
        first_row: int = 0,
    ) -> RunCard:
        """A card for ``rows`` rows from ``first_row`` on, cut into chunks of ``chunk_rows``."""
        return cls(
            schema_version=SCHEMA_VERSION,
            fingerprint=fingerprint_of(inputs),
            inputs=inputs,
            rows=rows,
            chunk_rows=chunk_rows,
            chunks=-(-rows // chunk_rows),
            prediction=prediction,
            decode=decode or DecodeOptions(),
            optional=optional,
            keep=keep,
            versions=versions,
            first_row=first_row,
        )

    @classmethod
    def read(cls, where: Where) -> RunCard:
        """Read and check the card of the set at ``where``.

        Raises:
            PredictionSetError: no card, not a card, another schema version, or inputs that do not
                give the fingerprint.
        """
        place = open_place(where)
        path = place.at(RUN_CARD)
        try:
            content = place.read(RUN_CARD)
        except (FileNotFoundError, NotADirectoryError):
            raise PredictionSetError(
                f"{place} is not a prediction set: it has no {RUN_CARD}; "
                "make one with `twophase predict` or `twophase ingest`, or name another folder "
                "or URL (score: --predictions)"
            ) from None
        except OSError as error:
            raise PredictionSetError(f"{path} cannot be read: {error.strerror}") from None
        try:
            version = json.loads(content)["schema_version"]
            if version != SCHEMA_VERSION:
                raise PredictionSetError(
                    f"{path} has schema version {version}; this twophase reads {SCHEMA_VERSION}: "
                    "use the twophase that wrote it, or predict again"
                )
            card = msgspec.json.decode(content, type=cls)
        except (ValueError, KeyError, TypeError, RecursionError, msgspec.MsgspecError) as error:
            raise PredictionSetError(
                f"{path} is damaged ({error}); copy the set again, or predict with --overwrite"
            ) from None
        if (
            fingerprint_of(card.inputs) != card.fingerprint
            or card.chunk_rows < 1
            or card.rows < 0
            or card.first_row < 0
            or card.chunks != (-(-card.rows // card.chunk_rows))
        ):
            raise PredictionSetError(
                f"{path} was altered: its inputs do not give its fingerprint and plan; "
                "copy the set again, or predict again with --overwrite"
            )
        return card

    def to_bytes(self) -> bytes:
        """The card as it stands in ``run.json``."""
        return (json.dumps(msgspec.to_builtins(self), indent=2, ensure_ascii=False) + "\n").encode()

    def write(self, folder: Path) -> None:
        """Write ``run.json`` into ``folder`` atomically."""
        atomic.write_bytes(folder / RUN_CARD, self.to_bytes())

    def bounds(self, chunk: int) -> tuple[int, int]:
        """First row of ``chunk`` and the row after its last, as rows of the data set."""
        start, stop = chunk * self.chunk_rows, min((chunk + 1) * self.chunk_rows, self.rows)
        return self.first_row + start, self.first_row + stop

    def rows_in(self, chunks: Iterable[int]) -> int:
        """Number of rows that ``chunks`` hold together."""
        return sum(stop - start for start, stop in map(self.bounds, chunks))


def fingerprint_of(inputs: dict[str, Any]) -> str:
    """32 hex digits of the sha256 over ``inputs`` as canonical JSON."""
    canonical = json.dumps(inputs, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def differing_inputs(ours: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> list[str]:
    """Dotted names of the inputs in which two cards differ, for error messages."""
    names: list[str] = []
    for key in sorted(ours.keys() | theirs.keys()):
        left, right = ours.get(key), theirs.get(key)
        if isinstance(left, dict) and isinstance(right, dict):
            names += differing_inputs(left, right, f"{prefix}{key}.")
        elif left != right:
            names.append(prefix + key)
    return names


def differing_versions(begun: RunCard, now: RunCard) -> str:
    """``torch 2.12 → 2.13, …`` for the libraries in which two cards differ; else empty."""
    return ", ".join(
        f"{name} {begun.versions.get(name, 'none')} → {now.versions.get(name, 'none')}"
        for name in sorted(begun.versions.keys() | now.versions.keys())
        if begun.versions.get(name) != now.versions.get(name)
    )
