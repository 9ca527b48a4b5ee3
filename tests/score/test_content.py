from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import DamagedChunkError
from pipeline.score.content import ContentHash, hash_content
from pipeline.store.card import DecodeOptions, RunCard
from pipeline.store.chunk import ChunkReader, chunk_name
from pipeline.store.place import Folder
from tests.score.sets import PREDICTIONS, REFERENCES, write_set


def _hash(folder: Path, predictions: Sequence[Any] = PREDICTIONS, **how: Any) -> str:
    references = how.pop("references", REFERENCES)
    card = write_set(folder, predictions, references, **how)
    digest = hash_content(Folder(folder), card, dict.fromkeys(range(card.chunks)))
    assert isinstance(digest, str)
    return digest


def test_chunks_do_not_matter(tmp_path: Path) -> None:
    for text in (False, True):
        hashes = {
            _hash(tmp_path / f"{rows}{text}", chunk_rows=rows, text=text) for rows in (1, 2, 3, 9)
        }
        assert len(hashes) == 1


def test_slices_do_not_matter(tmp_path: Path) -> None:
    # The buffers of a slice are those of the whole table.
    card = write_set(tmp_path / "set", chunk_rows=9)
    table = ChunkReader(tmp_path / "set" / chunk_name(0), card, 0).read()
    content = ContentHash(card)
    for start in (0, 1, 4):
        content.update(table.slice(start, {0: 1, 1: 3, 4: 9}[start]))
    assert content.hexdigest() == hash_content(Folder(tmp_path / "set"), card, {0: None})


def test_all_that_was_scored_matters(tmp_path: Path) -> None:
    ids = [[1, 2], [3], []]
    refs = [["ab", "c"], ["d"], ["e"]]
    variants: list[tuple[Any, Any, dict[str, Any]]] = [
        (ids, refs, {}),
        ([[1], [2, 3], []], refs, {}),
        ([[1, 2], [4], []], refs, {}),
        (ids, [["a", "bc"], ["d"], ["e"]], {}),
        (ids, [["ab"], ["c", "d"], ["e"]], {}),
        (ids, [["ab", "c"], ["d"], ["E"]], {}),
        (ids, refs, {"decode": DecodeOptions(skip_special_tokens=False)}),
        (["1", "3", ""], refs, {"text": True}),
        (["1", "", "3"], refs, {"text": True}),
    ]
    hashes = {
        _hash(tmp_path / str(number), predictions, references=references, **how)
        for number, (predictions, references, how) in enumerate(variants)
    }
    assert len(hashes) == len(variants)


def test_null_is_not_empty_and_chunks_still_do_not_matter(tmp_path: Path) -> None:
    variants: list[Any] = [
        [["a"], [""], ["b", ""]],
        [["a"], [None], ["b", ""]],
        [["a"], [""], ["b", None]],
        [["a"], [], ["b", ""]],
        [["a"], None, ["b", ""]],
    ]
    hashes = set()
    for number, references in enumerate(variants):
        cut = {
            _hash(tmp_path / f"{number}-{rows}", "xyz", references=references, text=True,
                  chunk_rows=rows)
            for rows in (1, 2, 3)
        }  # fmt: skip
        assert len(cut) == 1
        hashes |= cut
    assert len(hashes) == len(variants)


def test_missing_rows_matter(tmp_path: Path) -> None:
    card = write_set(tmp_path, ["a", "a"], [["a"], ["a"]], chunk_rows=1)
    place = Folder(tmp_path)
    assert hash_content(place, card, {0: None}) != hash_content(place, card, {1: None})


def test_a_set_without_rows_has_a_hash(tmp_path: Path) -> None:
    card = RunCard.plan(inputs={}, rows=0, chunk_rows=1, versions={})
    assert hash_content(Folder(tmp_path), card, {}) == ContentHash(card).hexdigest()
    assert len(ContentHash(card).hexdigest()) == 32


def test_the_hash_is_the_same_everywhere(tmp_path: Path) -> None:
    # Made by the first version; a change here parts all hashes that were ever published.
    assert _hash(tmp_path, ["a b", ""], references=[["é"], ["c", "d"]], text=True) == (
        "963219a112541aa6944290bed1380a0b"
    )


def test_a_chunk_that_cannot_be_read_is_returned_as_its_error(tmp_path: Path) -> None:
    card = write_set(tmp_path)
    (tmp_path / chunk_name(1)).write_bytes(b"no parquet")
    error = hash_content(Folder(tmp_path), card, dict.fromkeys(range(card.chunks)))
    with pytest.raises(DamagedChunkError, match=r"chunk-00001.parquet is damaged"):
        raise error
