"""JSONL, CSV and Parquet, by field."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ConfigError, DataError
from pipeline.ingest.fields import Fields
from pipeline.ingest.ingest import ingest_fields
from tests.ingest.test_lines import rows
from tests.score.strategies import any_text

HERE = Fields("hyp", ("ref",), "key", ("tag",))


def write_jsonl(path: Path, data: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in data), encoding="utf-8")
    return path


def write_csv(path: Path, data: list[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(
            handle, list(data[0]), delimiter="\t" if path.suffix == ".tsv" else ","
        )
        writer.writeheader()
        writer.writerows(data)
    return path


def write_parquet(path: Path, data: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(data), path, row_group_size=2)
    return path


WRITERS = {
    ".jsonl": write_jsonl,
    ".csv": write_csv,
    ".tsv": write_csv,
    ".parquet": write_parquet,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_gives_the_same_rows(tmp_path: Path, suffix: str) -> None:
    data = [
        {"key": f"k{n}", "hyp": f'h,{n}\n"q"', "ref": f"r\t{n}", "tag": "ab"[n % 2], "x": "y"}
        for n in range(5)
    ]
    path = WRITERS[suffix](tmp_path / f"d{suffix}", data)
    card = ingest_fields(str(path), HERE, tmp_path / "out", chunk_rows=2)
    found = rows(tmp_path / "out")
    assert (card.rows, card.chunks, card.keep) == (5, 3, ("tag",))
    assert [(row["id"], row["prediction"], row["references"], row["tag"]) for row in found] == [
        (row["key"], row["hyp"], [row["ref"]], row["tag"]) for row in data
    ]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_list_holds_several_references(tmp_path: Path, suffix: str) -> None:
    data = [
        {"hyp": "a", "ref": ["x", "y", ""], "more": "z"},
        {"hyp": "b", "ref": ["x", None], "more": None},
        {"hyp": "c", "ref": None, "more": "w"},
    ]
    path = WRITERS[suffix](tmp_path / f"d{suffix}", data)
    ingest_fields(str(path), Fields("hyp", ("ref", "more")), tmp_path / "out")
    assert [row["references"] for row in rows(tmp_path / "out")] == [
        ["x", "y", "", "z"],
        ["x"],
        ["w"],
    ]
    assert [row["id"] for row in rows(tmp_path / "out")] == ["0", "1", "2"]


def test_an_empty_cell_is_an_empty_text(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("hyp,ref,more,tag\n,x,,\nb,,,t\nc,,z,\n")
    fields = Fields("hyp", ("ref", "more"), keep=("tag",))
    ingest_fields(str(path), fields, tmp_path / "out")
    found = rows(tmp_path / "out")
    assert [row["prediction"] for row in found] == ["", "b", "c"]
    assert [row["references"] for row in found] == [["x"], [""], ["z"]]
    assert [row["tag"] for row in found] == [None, "t", None]


def test_numbers_are_texts_and_kept_ones_keep_their_type(tmp_path: Path) -> None:
    data = [{"hyp": 3, "ref": [0.5, True], "n": 1}, {"hyp": "x", "ref": "y", "n": 2.5}]
    path = write_jsonl(tmp_path / "d.jsonl", data)
    ingest_fields(str(path), Fields("hyp", ("ref",), keep=("n",)), tmp_path / "out")
    found = rows(tmp_path / "out")
    assert [(row["prediction"], row["references"]) for row in found] == [
        ("3", ["0.5", "True"]),
        ("x", ["y"]),
    ]
    assert [row["n"] for row in found] == [1.0, 2.5]


def test_names_of_our_own_are_no_kept_columns(tmp_path: Path) -> None:
    data = [{"id": "a", "prediction": "p", "references": ["r"]}]
    path = write_jsonl(tmp_path / "d.jsonl", data)
    fields = Fields("prediction", ("references",), "id", ("id", "prediction", "references"))
    assert ingest_fields(str(path), fields, tmp_path / "out").keep == ()
    with pytest.raises(ConfigError, match="--keep: 'row' is the name of a column"):
        Fields("hyp", ("ref",), keep=("row",))
    with pytest.raises(ConfigError, match="--reference names the field 'ref' twice"):
        Fields("hyp", ("ref", "ref"))


@settings(deadline=None, max_examples=25)
@given(
    data=st.lists(
        st.tuples(
            any_text, st.lists(any_text, min_size=1, max_size=3), st.none() | st.integers(-9, 9)
        ),
        min_size=1,
        max_size=8,
    ),
    suffix=st.sampled_from([".jsonl", ".parquet"]),
    chunk_rows=st.integers(1, 4),
)  # fmt: skip
def test_every_row_arrives_as_it_is(
    tmp_path_factory: pytest.TempPathFactory,
    data: list[tuple[str, list[str], int | None]],
    suffix: str,
    chunk_rows: int,
) -> None:
    folder = tmp_path_factory.mktemp("fields")
    written = [{"h": text, "r": references, "n": number} for text, references, number in data]
    path = WRITERS[suffix](folder / f"d{suffix}", written)
    fields = Fields("h", ("r",), keep=("n",))
    ingest_fields(str(path), fields, folder / "out", chunk_rows=chunk_rows)
    found = rows(folder / "out")
    read = [(row["prediction"], row["references"]) for row in found]
    assert read == [(text, references) for text, references, _ in data]
    if any(number is not None for _, _, number in data):
        assert [row["n"] for row in found] == [number for _, _, number in data]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([{"hyp": "a", "ref": "x"}, {"hyp": None}], "row 1: the prediction in .* 'hyp' is null"),
        ([{"hyp": ["a"], "ref": "x"}], "row 0: the prediction in field 'hyp' is a list"),
        ([{"hyp": "a", "ref": None}], r"row 0 has no reference \(in ref\)"),
        ([{"hyp": "a", "ref": []}], "row 0 has no reference"),
        ([{"hyp": "a", "ref": [["x"]]}], "row 0: a reference in field 'ref' is a list"),
        ([{"hyp": "a", "ref": {"t": "x"}}], "row 0: a reference in field 'ref' is an object"),
        ([{"hyp": "a\ud800", "ref": "x"}], "row 0: the prediction .* a lone surrogate"),
        ([{"hyp": "a", "reference": "x"}], r"no column 'ref' .known: hyp, reference.; name its"),
    ],
)  # fmt: skip
def test_rows_that_will_not_do_are_named(
    tmp_path: Path, data: list[dict[str, Any]], message: str
) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", data)
    with pytest.raises(DataError, match=message):
        ingest_fields(str(path), Fields("hyp", ("ref",)), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["d.jsonl"]


def test_ids_are_unique(tmp_path: Path) -> None:
    data = [{"key": n % 7, "hyp": "a", "ref": "b", "tag": ""} for n in range(9)]
    path = write_jsonl(tmp_path / "d.jsonl", data)
    with pytest.raises(
        DataError, match="d.jsonl: rows 0 and 7 have the same id '0' in field 'key'"
    ):
        ingest_fields(str(path), HERE, tmp_path / "out", chunk_rows=2)
    assert not (tmp_path / "out").exists()
    data[4]["key"] = None
    path = write_jsonl(tmp_path / "d.jsonl", data)
    with pytest.raises(DataError, match="row 4: the id in field 'key' is null; give every row"):
        ingest_fields(str(path), HERE, tmp_path / "out")


def test_files_of_no_known_kind(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("{}")
    with pytest.raises(ConfigError, match=r"d.txt is of no kind that is known .* --format"):
        ingest_fields(str(tmp_path / "d.txt"), HERE, tmp_path / "out")
    write_jsonl(tmp_path / "d.txt", [{"hyp": "a", "ref": "b"}])
    ingest_fields(str(tmp_path / "d.txt"), Fields("hyp", ("ref",)), tmp_path / "o", format="jsonl")
    with pytest.raises(DataError, match="d.txt cannot be read as Parquet"):
        ingest_fields(str(tmp_path / "d.txt"), HERE, tmp_path / "out", format="parquet")
    (tmp_path / "d.csv").write_text("hyp,ref,key,tag\n")
    with pytest.raises(DataError, match="d.csv has no rows"):
        ingest_fields(str(tmp_path / "d.csv"), HERE, tmp_path / "out")
