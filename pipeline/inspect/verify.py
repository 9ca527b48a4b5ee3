"""Every page of a prediction set read, every fault named.

What score would refuse is a fault; what score counts and scores by its rules (empty predictions,
ids beyond the vocabulary, null references) is a note. A set without a seal is a fault, too: without
the hashes, 2 % of flipped bits change data in silence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from pipeline.errors import PredictionSetError, shown
from pipeline.ids import IdHashes, hash_id
from pipeline.inspect.rows import Findings, check_rows
from pipeline.score.decode import Decoder, TokenizerFile
from pipeline.store.card import RUN_CARD, RunCard
from pipeline.store.chunk import ChunkReader, chunk_index, chunk_name, file_sha256
from pipeline.store.place import Place, Where, open_place
from pipeline.store.prediction_set import (
    SUMS,
    TOKENIZER_FILE,
    PredictionSet,
    name_chunks,
    read_sums,
)

_NAMED_IDS = 5


@dataclass
class Verdict:
    """What was found.

    Attributes:
        rows: read.
        chunks: read whole.
        faults: in words, with the file they are in.
        notes: what score counts, in words.
    """

    rows: int = 0
    chunks: int = 0
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def verify(where: Where, progress: Callable[[int], object] = lambda rows: None) -> Verdict:
    """Check the set at ``where``.

    Args:
        where: folder or URL of the set.
        progress: called with a number of rows whenever so many more were read.

    Raises:
        PredictionSetError: there is no set, or its card cannot be read: nothing else can be
            checked.
    """
    place = open_place(where)
    card = RunCard.read(place)
    verdict = Verdict()
    names = set(place.sizes())
    sums = _check_files(place, names, verdict)
    present = _check_chunks(names, card, verdict)
    decoder = _decoder(place, names, card, verdict)
    hashes, readable = IdHashes(), []
    counts = Findings()
    kept: dict[str, tuple[pa.DataType, str]] = {}
    for chunk in present:
        findings = Findings()
        try:
            reader = _open(place, card, chunk, sums, verdict)
            _check_kept(reader, chunk, card, kept, verdict)
            for table in reader.tables():
                _check_table(table, card, decoder, findings, hashes)
                verdict.rows += len(table)
                progress(len(table))
        except (PredictionSetError, pa.ArrowException) as error:
            verdict.faults.append(_one_line(chunk, error))
        else:
            readable.append(chunk)
        verdict.faults += [f"{chunk_name(chunk)}: {line}" for line in findings.lines()]
        for what, number in findings.counts.items():
            counts.count(what, number)
    verdict.chunks = len(readable)
    verdict.faults += _repeated_ids(place, card, readable, hashes)
    _check_with_score(place, verdict)
    verdict.notes += [f"{what}: {number}" for what, number in counts.counts.items()]
    return verdict


def _check_files(place: Place, names: set[str], verdict: Verdict) -> dict[str, str]:
    """Compare what is there with the seal; the hashes of the chunks, which are compared later."""
    try:
        sums = read_sums(place)
    except PredictionSetError as error:
        verdict.faults.append(str(error))
        return {}
    if sums is None:
        verdict.faults.append(
            f"{SUMS} is missing: the set was never sealed, so altered bytes may go unnoticed"
        )
        return {}
    for name, expected in sums.items():
        if chunk_index(name) is not None:
            continue
        if name not in names:
            verdict.faults.append(f"{name} is missing, but {SUMS} lists it")
        elif hashlib.sha256(place.read(name)).hexdigest() != expected:
            verdict.faults.append(_altered(name))
    for name in sorted(names - sums.keys() - {SUMS}):
        ours = chunk_index(name) is not None or name in (RUN_CARD, TOKENIZER_FILE)
        line = f"{name} is not listed in {SUMS}"
        (verdict.faults if ours else verdict.notes).append(line)
    return sums


def _open(
    place: Place, card: RunCard, chunk: int, sums: dict[str, str], verdict: Verdict
) -> ChunkReader:
    """Open a chunk; one that is not what was sealed may still be one."""
    name = chunk_name(chunk)
    with place.local(name) as path:
        if name in sums and file_sha256(path) != sums[name]:
            verdict.faults.append(_altered(name))
        return ChunkReader(path, card, chunk, where=place.at(name))


def _altered(name: str) -> str:
    return f"{name}: its sha256 is not the one in {SUMS}"


def _check_with_score(place: Place, verdict: Verdict) -> None:
    """Whatever score refuses a set for is a fault, should it have no other."""
    try:
        PredictionSet(place).require_complete()
    except PredictionSetError as error:
        if not verdict.faults:
            verdict.faults.append(str(error))


def _check_chunks(names: set[str], card: RunCard, verdict: Verdict) -> list[int]:
    """The chunks that are there and planned, ascending."""
    found = set(map(chunk_index, names))
    there = sorted(chunk for chunk in found if chunk is not None)
    planned = [chunk for chunk in there if chunk < card.chunks]
    stray = [chunk for chunk in there if chunk >= card.chunks]
    missing = sorted(set(range(card.chunks)) - set(planned))
    if missing:
        verdict.faults.append(
            f"{len(missing)} of {card.chunks} chunks are missing ({name_chunks(missing)})"
        )
    if stray:
        verdict.faults.append(
            f"{RUN_CARD} plans {card.chunks} chunks, but there is {name_chunks(stray)}"
        )
    return planned


def _decoder(place: Place, names: set[str], card: RunCard, verdict: Verdict) -> Decoder | None:
    if card.prediction == "text":
        return None
    if TOKENIZER_FILE not in names:
        verdict.faults.append(f"{TOKENIZER_FILE} is missing: the ids cannot be decoded")
        return None
    try:
        return Decoder(TokenizerFile(place, ""), card.decode)
    except PredictionSetError as error:
        verdict.faults.append(str(error))
        return None


def _check_kept(
    reader: ChunkReader,
    chunk: int,
    card: RunCard,
    kept: dict[str, tuple[pa.DataType, str]],
    verdict: Verdict,
) -> None:
    """A kept column has one type in all chunks."""
    name = chunk_name(chunk)
    for column in card.keep:
        found = reader.schema.field(column).type
        expected, first = kept.setdefault(column, (found, name))
        if found != expected:
            verdict.faults.append(
                f"{name}: the kept column {shown(column)} is {found}, but {expected} in {first}"
            )


def _check_table(
    table: pa.Table, card: RunCard, decoder: Decoder | None, findings: Findings, hashes: IdHashes
) -> None:
    table.validate(full=True)  # a Parquet file may hold strings that are not UTF-8
    found = check_rows(table, card.keep, decoder)
    for what, rows in found.faults.items():
        findings.fault(what, rows)
    for what, number in found.counts.items():
        findings.count(what, number)
    hashes.add(text for text in table.column("id").to_pylist() if text is not None)


def _repeated_ids(place: Place, card: RunCard, chunks: list[int], hashes: IdHashes) -> list[str]:
    """Ids that stand in two rows; the chunks are read again only where hashes are equal."""
    suspects = hashes.repeated()
    if not suspects:
        return []
    first: dict[str, int] = {}
    repeated: dict[str, int] = {}
    for chunk in chunks:
        for table in ChunkReader.at(place, card, chunk).tables(["row", "id"]):
            rows, ids = (table.column(name).to_pylist() for name in ("row", "id"))
            for row, text in zip(rows, ids, strict=True):
                if text is None or hash_id(text) not in suspects:
                    continue
                if first.setdefault(text, row) != row:
                    repeated.setdefault(text, row)
    lines = [
        f"the id {shown(text)} stands in rows {first[text]} and {row}"
        for text, row in repeated.items()
    ]
    rest = len(lines) - _NAMED_IDS
    return lines[:_NAMED_IDS] + ([f"{rest} more ids stand in two rows"] if rest > 0 else [])


def _one_line(chunk: int, error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if chunk_name(chunk) in text else f"{chunk_name(chunk)}: {text}"
