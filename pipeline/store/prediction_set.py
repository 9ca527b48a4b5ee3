"""A prediction set as phase two sees it: run card, chunks, hashes, coverage."""

from __future__ import annotations

import hashlib
import re
from contextlib import AbstractContextManager
from pathlib import Path

from pipeline.errors import MissingChunksError, PredictionSetError
from pipeline.store.card import RUN_CARD, RunCard
from pipeline.store.chunk import ChunkReader, chunk_index, chunk_name
from pipeline.store.place import Folder, Where, open_place

SUMS = "SHA256SUMS"
TOKENIZER_FOLDER = "tokenizer"
TOKENIZER_FILE = f"{TOKENIZER_FOLDER}/tokenizer.json"
_MEND = "copy the set again, or run `twophase predict`, which keeps intact chunks"


class PredictionSet:
    """The set at ``where``: a folder, or the URL of one.

    Attributes:
        place: where it is.
        card: its run card.
        sums: file name -> sha256 for a sealed set, else None.
        sizes: file name -> bytes of what was there when this was made.

    Raises:
        PredictionSetError: there is no set, or its card or seal is damaged.
    """

    def __init__(self, where: Where) -> None:
        self.place = open_place(where)
        self.card = RunCard.read(self.place)
        self.sums = read_sums(self.place)
        if self.sums is not None:
            self._check_seal(self.sums)
        self.sizes = self.place.sizes()
        chunks = set(map(chunk_index, self.sizes)) - {None}
        self._present = sorted(chunk for chunk in chunks if chunk is not None)
        stray = [chunk for chunk in self._present if chunk >= self.card.chunks]
        if stray:
            raise PredictionSetError(
                f"{self.place} holds {chunk_name(stray[0])}, but its {RUN_CARD} plans "
                f"{self.card.chunks} chunks: two runs were mixed; copy the set again"
            )

    def _check_seal(self, sums: dict[str, str]) -> None:
        expected = {RUN_CARD, *map(chunk_name, range(self.card.chunks))}
        if self.card.prediction == "ids":
            expected.add(TOKENIZER_FILE)
        odd = sorted(expected ^ sums.keys())
        if odd:
            raise PredictionSetError(
                f"{self.place.at(SUMS)} was altered: it does not list just the files of this set "
                f"({odd[0]}); {_MEND}"
            )
        if hashlib.sha256(self.place.read(RUN_CARD)).hexdigest() != sums[RUN_CARD]:
            raise PredictionSetError(
                f"{self.place.at(RUN_CARD)} was altered: its sha256 is not the one in {SUMS}; "
                f"{_MEND}"
            )

    @property
    def sealed(self) -> bool:
        """Whether the run was finished and sealed."""
        return self.sums is not None

    @property
    def tokenizer_file(self) -> Path:
        """The ``tokenizer.json`` to decode with, of a set in a folder."""
        assert isinstance(self.place, Folder)
        return self.place.path / TOKENIZER_FILE

    def present(self) -> list[int]:
        """Numbers of the chunks that are there, ascending."""
        return list(self._present)

    def missing(self) -> list[int]:
        """Numbers of the chunks that are not there, ascending."""
        return sorted(set(range(self.card.chunks)) - set(self._present))

    def require_complete(self) -> None:
        """Raise ``MissingChunksError`` unless every chunk is there."""
        missing = self.missing()
        if missing:
            raise MissingChunksError(
                f"{self.place}: {len(missing)} of {self.card.chunks} chunks are missing "
                f"({name_chunks(missing)}); make them with `twophase predict` where the model is, "
                "or score what is there with --allow-partial"
            )

    def local_chunk(self, chunk: int) -> AbstractContextManager[Path]:
        """A path at which chunk number ``chunk`` can be opened; see ``Place.local``."""
        return self.place.local(chunk_name(chunk), self.chunk_sha256(chunk))

    def chunk_sha256(self, chunk: int) -> str | None:
        """Its expected sha256, where the set is sealed."""
        return None if self.sums is None else self.sums[chunk_name(chunk)]

    def hashes(self) -> dict[int, str | None]:
        """The chunks that are there, ascending, each with ``chunk_sha256``."""
        return {chunk: self.chunk_sha256(chunk) for chunk in self._present}

    def reader(self, chunk: int) -> ChunkReader:
        """Open chunk ``chunk``, checked."""
        return ChunkReader.at(self.place, self.card, chunk, self.chunk_sha256(chunk))


def name_chunks(chunks: list[int], limit: int = 5) -> str:
    """``chunk-00001.parquet, chunk-00003.parquet and 7 more``."""
    named = ", ".join(chunk_name(chunk) for chunk in chunks[:limit])
    return named + (f" and {len(chunks) - limit} more" if len(chunks) > limit else "")


def read_sums(where: Where) -> dict[str, str] | None:
    """Parse ``SHA256SUMS`` (the format of ``sha256sum``); None where there is none."""
    place = open_place(where)
    path = place.at(SUMS)
    try:
        text = place.read(SUMS).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise PredictionSetError(f"{path} cannot be read ({error}); {_MEND}") from None
    sums = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = re.fullmatch(r"([0-9a-f]{64})  (\S.*)", line)
        if match is None:
            raise PredictionSetError(f"{path} line {number} is damaged; {_MEND}")
        sums[match[2]] = match[1]
    return sums


def format_sums(sums: dict[str, str]) -> str:
    """The text of ``SHA256SUMS`` for file name -> sha256, in name order."""
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
