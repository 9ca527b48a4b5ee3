"""JSON lines and CSV: what is read, and what each kind of damage says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import ConfigError, DataError
from tests.prepare.files import pair, rows, run, write_jsonl

GOOD = json.dumps(pair(0)).encode() + b"\n"


def written(tmp_path: Path, name: str, content: bytes) -> Path:
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


def fails(tmp_path: Path, name: str, content: bytes, message: str, **settings: Any) -> None:
    path = written(tmp_path, name, content)
    with pytest.raises(DataError, match=message):
        run(tmp_path, dataset=path, **settings)
    assert not (tmp_path / "examples.parquet").exists()
    assert sorted(item.name for item in tmp_path.iterdir()) == [name]  # nothing temporary left


def test_blank_lines_byte_order_mark_and_line_ends(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\r\n") + b"\n  \n"
    content += json.dumps(pair(1, document="a\u2028b"), ensure_ascii=False).encode()
    run(tmp_path, dataset=written(tmp_path, "d.jsonl", content))
    assert [row["document"] for row in rows(tmp_path)] == ["document 0", "a\u2028b"]


@pytest.mark.parametrize("name", ["d.jsonl", "d.ndjson", "d.json"])
def test_the_names_of_json_lines(name: str, tmp_path: Path) -> None:
    run(tmp_path, dataset=written(tmp_path, name, GOOD))
    assert len(rows(tmp_path)) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD + b'{"id": \n', r"d.jsonl line 2 is not JSON: Expecting value at character \d"),
        (GOOD + b"\n[1]\n", "d.jsonl line 3: expected a JSON object, got list"),
        (b"[" + GOOD + b"]", "line 1 is not JSON.*one JSON object a line .*jq -c"),
        (b"[]", r"line 1: expected a JSON object, got list \(jq -c '.\[\]' makes lines"),
        (b'"text"\n', "line 1: expected a JSON object, got str"),
        (GOOD + b'{"id": "caf\xe9"}\n', r"line 2 is not UTF-8 \(byte 0xe9 at position 11\).*iconv"),
        (b"\xff\xfe{\x00", r"line 1 is not UTF-8 \(byte 0xff at position 0\)"),
        (GOOD + b'{"n": ' + b"9" * 5000 + b"}\n", "line 2 cannot be read: Exceeds the limit"),
        (GOOD + b"[" * 100_000, "line 2 cannot be read: .*recursion"),
        (b"", "d.jsonl has no rows; there is nothing to evaluate"),
        (b"\n \n", "d.jsonl has no rows"),
    ],
)
def test_bad_json_lines_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    fails(tmp_path, "d.jsonl", content, message)


def test_beyond_the_limit_nothing_is_parsed(tmp_path: Path) -> None:
    path = written(tmp_path, "d.jsonl", GOOD + b"not json\n")
    run(tmp_path, dataset=path, limit=1)
    assert len(rows(tmp_path)) == 1
    with pytest.raises(DataError, match="line 2 is not JSON"):
        run(tmp_path, dataset=path, limit=1, seed=0)  # a sample is of all rows


@pytest.mark.parametrize(
    ("values", "type_", "stored"),
    [
        (["a", None], pa.string(), ["a", None]),
        ([1, None, 2**60], pa.int64(), [1, None, 2**60]),
        ([True, False], pa.bool_(), [True, False]),
        ([1, 2.5, None], pa.float64(), [1.0, 2.5, None]),
        ([None, None], pa.string(), [None, None]),
        ([1, "a", True, 2.5], pa.string(), ["1", "a", "True", "2.5"]),
        ([2**70, 1], pa.string(), [str(2**70), "1"]),
        ([2**60, 0.5], pa.string(), [str(2**60), "0.5"]),
        ([True, 1], pa.string(), ["True", "1"]),
        ([["a"], [], None], pa.list_(pa.string()), [["a"], [], None]),
        ([[1], [2.5, None]], pa.list_(pa.float64()), [[1.0], [2.5, None]]),
        ([[1], ["a"]], pa.list_(pa.string()), [["1"], ["a"]]),
        (["a", float("nan"), float("inf")], pa.string(), ["a", None, None]),
    ],
)
def test_a_column_has_one_type_whatever_the_order(
    values: list[Any], type_: pa.DataType, stored: list[Any], tmp_path: Path
) -> None:
    for order in (1, -1):
        data = [pair(number, x=value) for number, value in enumerate(values[::order])]
        run(tmp_path, dataset=write_jsonl(tmp_path / "d.jsonl", data), keep=["x"])
        column = pq.read_table(tmp_path / "examples.parquet").column("x")
        assert column.type == type_
        assert column.to_pylist() == stored[::order]


def test_the_type_does_not_depend_on_where_a_batch_ends(tmp_path: Path) -> None:
    data = [pair(number, x=number) for number in range(1500)] + [pair(1500, x=0.5)]
    run(tmp_path, dataset=write_jsonl(tmp_path / "d.jsonl", data), keep=["x"])
    assert pq.read_schema(tmp_path / "examples.parquet").field("x").type == pa.float64()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1}, "line 2: the column 'x' holds an object; make a column of what is in it"),
        ([[1]], "line 2: the column 'x' holds a list in a list"),
        ([{"a": 1}], "line 2: the column 'x' holds an object"),
        ([1], "line 2: the column 'x' holds a list in one row and a single value in another"),
        ("x\ud83d", r"line 2: the column 'x' holds a lone surrogate \(U\+D83D\) at character 1"),
    ],
)
def test_what_fits_in_no_column(value: Any, message: str, tmp_path: Path) -> None:
    content = "".join(json.dumps(row) + "\n" for row in (pair(0, x=1), pair(1, x=value)))
    fails(tmp_path, "d.jsonl", content.encode(), message, keep=["x"])


def test_a_missing_key_is_null(tmp_path: Path) -> None:
    data = [pair(0, tag="t"), pair(1)]
    path = write_jsonl(tmp_path / "d.jsonl", data)
    run(tmp_path, dataset=path, keep=["tag"])
    assert [row["tag"] for row in rows(tmp_path)] == ["t", None]
    message = r"d.jsonl row 1 \(id 'id-1'\): the input column 'tag' is null"
    with pytest.raises(DataError, match=message):
        run(tmp_path, dataset=path, input=["document", "tag"])


CSV = b"id,document,summary\na,d,s\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CSV + b"b,d\n", "d.csv line 3: 2 cells where the header has 3; .*wants quotes"),
        (CSV + b"b,d,s,x\n", "d.csv line 3: 4 cells where the header has 3"),
        (CSV + b'b,"d,s\n', "d.csv line 3 is not CSV: unexpected end of data"),
        (CSV + b'b,"d"x,s\n', "d.csv line 3 is not CSV: .*expected after"),
        (CSV + b"b,\xe9,s\n", "d.csv line 3 is not UTF-8"),
        (CSV + b'b,"two\nlines",s\nc,d\n', "d.csv line 5: 2 cells"),
        (b"id,document,summary,id\na,d,s,b\n", "d.csv has two columns 'id'"),
        (CSV + b"b,,s\n", r"row 1 \(id 'b'\): the input column 'document' is null"),
        (CSV + b"b,d,\n", r"row 1 \(id 'b'\): the reference in column 'summary' is null"),
        (CSV + b",d,s\n", "row 1: the id in column 'id' is null; give every row an id"),
        (b"id,document,summary\n", "d.csv has no rows"),
        (b"", "d.csv has no rows"),
    ],
)
def test_bad_csv_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    fails(tmp_path, "d.csv", content, message)


@pytest.mark.parametrize(
    ("name", "separator", "message"),
    [
        ("d.csv", ";", "the separator seems to be ';'; save the file with commas"),
        ("d.csv", "\t", "the separator seems to be a tab; call the file .tsv, or save"),
        ("d.tsv", ",", "the separator seems to be ','; call the file .csv, or save"),
        ("d.tsv", ";", "the separator seems to be ';'; save the file with commas"),
    ],
)
@pytest.mark.parametrize("text", ["text", "one, two", "one\ttwo"])
def test_another_separator_is_named(
    name: str, separator: str, message: str, text: str, tmp_path: Path
) -> None:
    rows = (("id", "document", "summary"), ("a", text, "s"))
    content = "\n".join(separator.join(cells) for cells in rows)
    fails(tmp_path, name, content.encode(), message)


def test_a_single_column_may_hold_a_semicolon(tmp_path: Path) -> None:
    path = written(tmp_path, "d.csv", b"a;b\nx;y\n")
    run(tmp_path, dataset=path, id=None, input="a;b", references="a;b")
    assert rows(tmp_path)[0]["references"] == ["x;y"]


def test_messages_stay_one_short_line(tmp_path: Path) -> None:
    """Whatever the columns are called, and however long the ids are."""
    name = "two\nlines " * 50
    long = "x\n" * 4500
    data = [pair(0, id=long, **{name: None}), pair(1, id=long, **{name: 1})]
    path = write_jsonl(tmp_path / "d.jsonl", data)
    for settings in (
        {"input": name},
        {"references": name},
        {"id": name},
        {"keep": [name, name]},
        {"input": name + "?"},
        {"input": "?"},
        {},
    ):
        with pytest.raises((ConfigError, DataError)) as caught:
            run(tmp_path, dataset=path, **settings)
        message = str(caught.value)
        assert "\n" not in message
        assert len(message) < 500 + len(str(path))


def test_of_many_columns_some_are_listed(tmp_path: Path) -> None:
    data = [pair(0) | {f"column {number}": 0 for number in range(5000)}]
    path = write_jsonl(tmp_path / "d.jsonl", data)
    with pytest.raises(DataError, match=r"\(known: column 0, .*, … \(5003 in all\)\); set prepare"):
        run(tmp_path, dataset=path, input="zzz")


def test_an_empty_cell_among_several_references_is_none(tmp_path: Path) -> None:
    path = written(tmp_path, "d.csv", b"id,document,one,two\na,d,,s\nb,e,t,\nc,f,u,v\n")
    run(tmp_path, dataset=path, references=["one", "two"])
    assert [row["references"] for row in rows(tmp_path)] == [["s"], ["t"], ["u", "v"]]


def test_csv_is_text_and_may_hold_lines(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbfid,document,summary,tag\r\n007,"a ""b"",\r\nc",1.50,\r\n\r\n'
    run(tmp_path, dataset=written(tmp_path, "d.csv", content), keep=["tag"])
    assert rows(tmp_path) == [
        {
            "row": 0,
            "id": "007",
            "references": ["1.50"],
            "document": 'a "b",\r\nc',
            "tag": None,
        }
    ]


def test_tabs_and_long_cells(tmp_path: Path) -> None:
    text = "x" * 200_000  # the csv module's own limit is 131,072
    content = f"id\tdocument\tsummary\na\t{text}\ts, t\n".encode()
    run(tmp_path, dataset=written(tmp_path, "d.tsv", content))
    assert rows(tmp_path)[0]["document"] == text
    assert rows(tmp_path)[0]["references"] == ["s, t"]


def test_a_missing_column_lists_those_there_are(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [pair(0), pair(1, extra=1)])
    message = re.escape("d.jsonl has no column 'summry' (did you mean summary?); its columns: id, ")
    with pytest.raises(DataError, match=message + "document, summary, extra; set prepare.input"):
        run(tmp_path, dataset=path, references="summry")
    with pytest.raises(
        DataError, match=r"no column 'zzz' \(known: document, extra, id, summary\);"
    ):
        run(tmp_path, dataset=path, input="zzz")
