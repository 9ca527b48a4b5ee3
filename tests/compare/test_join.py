"""Which sets can be compared row by row, and what is said about those that cannot."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pipeline.compare.join import join
from pipeline.compare.scored import Scored
from pipeline.errors import ScoresError
from tests.compare.systems import Rows, write_scores

ROWS: Rows = [(name, "the cat", ["the cat sat"]) for name in ("a", "b", "c", "d", "e")]


def _scored(folder: Path, rows: Rows, **how: object) -> Scored:
    return Scored(write_scores(folder, rows, chunk_rows=2, metrics=("bleu",), **how))


def test_rows_are_matched_by_id(tmp_path: Path) -> None:
    ours, theirs = _scored(tmp_path / "x", ROWS), _scored(tmp_path / "y", ROWS[::-1])
    joined = join([ours, theirs], common=False)
    assert joined.rows.tolist() == [0, 1, 2, 3, 4]
    assert joined.ids.to_pylist() == ["a", "b", "c", "d", "e"]
    assert [place.tolist() for place in joined.places] == [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]


def test_what_all_have(tmp_path: Path) -> None:
    sets = [
        _scored(tmp_path / "x", ROWS),
        _scored(tmp_path / "y", [ROWS[3], ROWS[1], ("z", "", ["z"])]),
        _scored(tmp_path / "z", ROWS[1:]),
    ]
    joined = join(sets, common=True)
    assert joined.rows.tolist() == [1, 3]
    assert joined.ids.to_pylist() == ["b", "d"]
    assert [place.tolist() for place in joined.places] == [
        [-1, 0, -1, 1, -1],
        [1, 0, -1],
        [0, -1, 1, -1],
    ]
    values = sets[1].columns(["bleu.ref_len", "bleu"], joined.places[1], 2)
    assert values[:, 0].tolist() == [3, 3]
    assert not np.isnan(values).any()


def test_other_examples(tmp_path: Path) -> None:
    ours = _scored(tmp_path / "x", ROWS)
    more: Rows = [(f"new{n}", "", ["z"]) for n in range(5)]
    message = (
        r"x and \S+y do not hold the same examples: 2 of 5 are only in \S+x \('a', 'b'\); "
        r"5 of 8 are only in \S+y \('new0', 'new1', 'new2' and 2 more\); .*--common$"
    )
    with pytest.raises(ScoresError, match=message):
        join([ours, _scored(tmp_path / "y", ROWS[2:] + more)], common=False)
    with pytest.raises(ScoresError, match=r"same examples: 1 of 5 are only in \S+x \('a'\); comp"):
        join([ours, _scored(tmp_path / "z", ROWS[1:])], common=False)


def test_nothing_in_common(tmp_path: Path) -> None:
    sets = [_scored(tmp_path / "x", ROWS[:2]), _scored(tmp_path / "y", ROWS[2:])]
    with pytest.raises(ScoresError, match=r"have no id in common, such as 'a', 'c'; compare"):
        join(sets, common=True)


def test_an_id_that_stands_twice(tmp_path: Path) -> None:
    twice = _scored(tmp_path / "y", [ROWS[0], ROWS[1], ROWS[0]])
    for sets in ([twice, twice], [_scored(tmp_path / "x", ROWS[:2]), twice]):
        with pytest.raises(ScoresError, match=r"y: 1 ids stand there more than once \('a'\)"):
            join(sets, common=False)


def test_other_references(tmp_path: Path) -> None:
    other: Rows = [(name, "the cat", ["the cat stood"]) for name, _, _ in ROWS[:2]]
    sets = [_scored(tmp_path / "x", ROWS), _scored(tmp_path / "y", other[::-1] + ROWS[2:])]
    message = r"2 of 5 examples have other references in \S+y than in \S+x \('a', 'b'\)"
    for common in (False, True):
        with pytest.raises(ScoresError, match=message):
            join(sets, common=common)


def test_a_further_reference_is_another_one_and_a_blank_one_is_none(tmp_path: Path) -> None:
    ours = _scored(tmp_path / "x", ROWS[:1])
    join([ours, _scored(tmp_path / "y", [("a", "", ["the cat sat", " "])])], common=False)
    with pytest.raises(ScoresError, match="1 of 1 examples have other references"):
        join([ours, _scored(tmp_path / "z", [("a", "", ["the cat sat", "x"])])], common=False)


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ScoresError, match=r"nowhere/summary.json: no such file; run `twophase sc"):
        Scored(tmp_path / "nowhere")
    folder = write_scores(tmp_path / "x", ROWS, chunk_rows=2)
    chunk = folder / "chunk-00001.parquet"
    content = chunk.read_bytes()
    chunk.write_bytes(content[:-9])
    with pytest.raises(ScoresError, match=r"chunk-00001.parquet cannot be read \(.*\); copy"):
        Scored(folder)
    chunk.unlink()
    with pytest.raises(ScoresError, match=r"holds scores of 3 rows, but its summary.json says 5"):
        Scored(folder)
    chunk.write_bytes(content)
    missing = re.escape("has no column nothing: it was written by another version of score")
    with pytest.raises(ScoresError, match=missing):
        Scored(folder).columns(["nothing"], np.arange(5), 5)
