"""Plain files, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import DataError
from pipeline.ingest.ingest import ingest_lines
from pipeline.store.prediction_set import PredictionSet
from tests.score.strategies import any_text


def write(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def rows(folder: Path) -> list[dict[str, object]]:
    source = PredictionSet(folder)
    source.require_complete()
    assert source.sealed
    return [row for chunk in source.present() for row in source.reader(chunk).read().to_pylist()]


def ingested(folder: Path, hypotheses: bytes, *references: bytes) -> list[tuple[str, list[str]]]:
    names = [write(folder / f"ref{n}.txt", content) for n, content in enumerate(references)]
    ingest_lines(write(folder / "hyp.txt", hypotheses), tuple(names), folder / "out")
    return [(row["prediction"], row["references"]) for row in rows(folder / "out")]  # type: ignore[misc]


def test_what_a_row_holds(tmp_path: Path) -> None:
    ingested(tmp_path, b"a\nb\n", b"c\nd\n")
    assert rows(tmp_path / "out")[1] == {
        "row": 1,
        "id": "1",
        "prediction": "b",
        "references": ["d"],
        "finish_reason": "ingested",
        "prompt_tokens": 0,
        "truncated": False,
        "batch_rows": 0,
    }


def test_a_blank_line_is_an_empty_text(tmp_path: Path) -> None:
    found = ingested(tmp_path, b"\nb\n\n", b"x\n\n \n")
    assert found == [("", ["x"]), ("b", [""]), ("", [" "])]


def test_a_blank_line_among_several_is_no_further_reference(tmp_path: Path) -> None:
    found = ingested(tmp_path, b"a\nb\nc\n", b"x\n\n \n", b"y\nz\n\n", b"\n\t\n\n")
    assert [references for _, references in found] == [["x", "y"], ["z"], [" "]]


@pytest.mark.parametrize(
    "content",
    [b"a\nb", b"a\nb\n", b"a\r\nb\r\n", b"a\r\nb", b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\r\nb"],
)
def test_line_ends_and_byte_order_mark(tmp_path: Path, content: bytes) -> None:
    assert ingested(tmp_path, content, b"x\ny\n") == [("a", ["x"]), ("b", ["y"])]


def test_nothing_else_ends_a_line(tmp_path: Path) -> None:
    text = "a\rb\x85c\u2028d\u2029e\x0bf\x0cg\x1ch\r"
    assert ingested(tmp_path, f"{text}\r\nz\n".encode(), b"x\ny") == [(text, ["x"]), ("z", ["y"])]


texts = any_text.map(lambda text: text.replace("\n", "").removesuffix("\r"))


@settings(deadline=None, max_examples=40)
@given(
    lines=st.lists(st.tuples(texts, texts), min_size=1, max_size=12),
    ends=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
    last=st.booleans(),
    chunk_rows=st.integers(1, 5),
)
def test_every_text_arrives_as_it_is(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[tuple[str, str]],
    ends: str,
    mark: bool,
    last: bool,
    chunk_rows: int,
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    names = []
    for side in (0, 1):
        content = ends.join(line[side] for line in lines)
        # Without its end, a last line that is empty is none.
        content += ends if last or not lines[-1][side] else ""
        written = (b"\xef\xbb\xbf" if mark else b"") + content.encode()
        names.append(write(folder / str(side), written))
    # U+FEFF at the beginning is the mark.
    expected = [list(line) for line in lines]
    if not mark:
        expected[0] = [text.removeprefix("\ufeff") for text in expected[0]]
    card = ingest_lines(names[0], (names[1],), folder / "out", chunk_rows=chunk_rows)
    found = rows(folder / "out")
    assert card.chunks == -(-len(lines) // chunk_rows)
    assert [[row["prediction"], *row["references"]] for row in found] == expected  # type: ignore[misc]
    assert [row["row"] for row in found] == list(range(len(lines)))


@pytest.mark.parametrize(
    ("hypotheses", "reference", "message"),
    [
        (b"a\nb\n", b"x\n", r"hyp.txt has 2 lines, but .*ref0.txt has 1: line n of the one"),
        (b"a\nb", b"x\ny\nz", r"hyp.txt has 2 lines, but .*ref0.txt has 3"),
        (b"", b"", "hyp.txt has no lines"),
        (b"\xef\xbb\xbf", b"", "hyp.txt has no lines"),
        (b"a\n\xe9t\xe9\n", b"x\ny", r"hyp.txt line 2 is not UTF-8 \(byte 0xe9 at position 0\)"),
        (b"a\nb", b"\xef\xbb\xbfx\xff\ny", r"ref0.txt line 1 is not .*0xff at position 1"),
        (b"a\nb", b"x\n\xed\xa0\x80", r"ref0.txt line 2 is not UTF-8 \(byte 0xed at position 0\)"),
        ("a\nb\n".encode("utf-16"), b"x\ny", r"hyp.txt line 1 is not UTF-8 \(byte 0x"),
        (b"a\nb", "x\ny".encode("utf-16"), r"ref0.txt line 1 is not UTF-8 \(byte 0x"),
        (b"\xff\xfea\x00\n\x00", b"x\ny", r"hyp.txt line 1 is not UTF-8 \(byte 0xff at position 0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(
    tmp_path: Path, hypotheses: bytes, reference: bytes, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        ingested(tmp_path, hypotheses, reference)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hyp.txt", "ref0.txt"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.txt: no such file"):
        ingest_lines(str(tmp_path / "nowhere.txt"), ("r",), tmp_path / "out")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        ingest_lines(str(tmp_path), ("r",), tmp_path / "out")
