from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import DamagedChunkError
from pipeline.score.decode import Decoder, TokenizerFile
from pipeline.score.texts import Texts, read_texts
from pipeline.store.chunk import ChunkReader, chunk_name
from pipeline.store.place import Folder
from tests.score.sets import PREDICTIONS, REFERENCES, write_set


def _read(folder: Path, *args: Any, **how: Any) -> Texts:
    card = write_set(folder, *args, chunk_rows=100, **how)
    path = folder / chunk_name(0)
    decoder = None
    if card.prediction == "ids":
        file = TokenizerFile(Folder(folder), str(folder))
        decoder = Decoder(file, card.decode)
    # A slice: positions in the buffers are not positions in the rows.
    return read_texts(ChunkReader(path, card, 0).read().slice(1), path, decoder)


@pytest.mark.parametrize("text", [True, False])
def test_rows_as_texts(tmp_path: Path, text: bool) -> None:
    texts = _read(tmp_path, PREDICTIONS, REFERENCES, text=text)
    assert texts.predictions == PREDICTIONS[1:]
    assert texts.references == [["the dog barked", "a dog was barking"], *REFERENCES[2:]]
    assert (texts.empty_references, texts.dropped_references, texts.unknown_ids) == (0, 1, 0)
    assert texts.null_references == 0


def test_a_blank_reference_among_others_is_none_and_alone_it_stays(tmp_path: Path) -> None:
    references = [["x"], ["", "a", "\u3000"], [" "], ["\n", ""]]
    texts = _read(tmp_path, ["x"] * 4, references, text=True)
    assert texts.references == [["a"], [" "], ["\n"]]
    assert (texts.empty_references, texts.dropped_references) == (2, 3)


def test_unknown_ids_are_counted(tmp_path: Path) -> None:
    texts = _read(tmp_path, [[0], [5, 32_000, 40_000], [32_000]], [["x"]] * 3)
    assert texts.unknown_ids == 3
    assert texts.predictions[1] == ""


def test_a_null_reference_is_a_blank_one_and_none_at_all_is_one(tmp_path: Path) -> None:
    references = [["x"], ["y", None], None, [], [None], [None, "", "z"], ["w"]]
    texts = _read(tmp_path, ["x"] * 7, references, text=True)
    assert texts.references == [["y"], [""], [""], [""], ["z"], ["w"]]
    assert (texts.null_references, texts.empty_references, texts.dropped_references) == (5, 3, 3)


@pytest.mark.parametrize(
    ("predictions", "references", "how", "message"),
    [
        (["a", "b", None], [["x"]] * 3, {"text": True}, "row 2: the prediction is null"),
        ([[1], None, [1]], [["x"]] * 3, {}, "row 1: the prediction is null"),
        ([[1], [2], [3, None]], [["x"]] * 3, {}, "row 2: a token id is null"),
        ([[1], [2, 3], [3, -100]], [["x"]] * 3, {}, r"row 2: token id -100 is negative: padding"),
        (
            ["a", "b"],
            [["x"], ["x"]],
            {"text": True, "finish_reasons": ["eos", None]},
            "row 1: the finish reason is null",
        ),
    ],
)
def test_what_cannot_be_scored_is_named(
    tmp_path: Path, predictions: Any, references: Any, how: Any, message: str
) -> None:
    with pytest.raises(DamagedChunkError, match=rf"chunk-00000.parquet, {message}"):
        _read(tmp_path, predictions, references, **how)
