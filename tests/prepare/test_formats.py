"""Every format gives the same examples."""

from __future__ import annotations

import csv
import string
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.prepare import source
from tests.prepare.files import rows, run, write_jsonl

Rows = list[dict[str, Any]]


def as_jsonl(path: Path, data: Rows) -> Path:
    return write_jsonl(path / "d.jsonl", data)


def as_csv(path: Path, data: Rows) -> Path:
    with (path / "d.csv").open("w", encoding="utf-8-sig", newline="") as handle:
        writer = csv.DictWriter(handle, data[0], quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(data)
    return path / "d.csv"


def as_parquet(path: Path, data: Rows) -> Path:
    pq.write_table(pa.Table.from_pylist(data), path / "d.parquet", row_group_size=3)
    return path / "d.parquet"


def as_saved(path: Path, data: Rows) -> Path:
    from datasets import Dataset

    Dataset.from_list(data).save_to_disk(path / "saved")
    return path / "saved"


def as_saved_splits(path: Path, data: Rows) -> Path:
    from datasets import Dataset, DatasetDict

    other = Dataset.from_list([dict.fromkeys(data[0], "other")])
    splits = DatasetDict({"train": other, "test": Dataset.from_list(data)})
    splits.save_to_disk(path / "splits")
    return path / "splits"


WRITERS = [as_jsonl, as_csv, as_parquet, as_saved, as_saved_splits]
TEXT = st.text(min_size=1, max_size=12)


@pytest.mark.parametrize("write", WRITERS)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    data=st.lists(
        st.fixed_dictionaries({"id": TEXT, "document": TEXT, "summary": TEXT, "tag": TEXT}),
        min_size=1,
        max_size=12,
        unique_by=lambda row: row["id"],
    ),
    batch_rows=st.integers(1, 5),
)
def test_rows_come_back_as_they_were(
    write: Callable[[Path, Rows], Path],
    data: Rows,
    batch_rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pipeline.prepare import arrow, hub, parquet, writer
    from pipeline.prepare import rows as row_files

    for module in (source, arrow, hub, parquet, writer, row_files):
        monkeypatch.setattr(module, "BATCH_ROWS", batch_rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        tally = run(path, dataset=write(path, data), keep=["tag"]).tally
        assert (tally.rows, tally.fewest_references, tally.most_references) == (len(data), 1, 1)
        assert rows(path) == [
            {
                "row": number,
                "id": row["id"],
                "references": [row["summary"]],
                "document": row["document"],
                "tag": row["tag"],
            }
            for number, row in enumerate(data)
        ]
        file = pq.ParquetFile(path / "examples.parquet")
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        assert all(count == batch_rows for count in groups[:-1])


def test_the_same_data_are_the_same_bytes(tmp_path: Path) -> None:
    """However they come: DVC is to see that nothing changed."""
    letters = string.ascii_lowercase
    data = [{"id": letter, "document": letter * 3, "summary": letter} for letter in letters]
    contents = set()
    for write in WRITERS:
        run(tmp_path, dataset=write(tmp_path, data))
        contents.add((tmp_path / "examples.parquet").read_bytes())
    assert len(contents) == 1


def test_the_schema_and_its_footer(tmp_path: Path) -> None:
    from pipeline.schema import SCHEMA_VERSION, examples_schema, read_metadata

    data = [{"id": "a", "document": "d", "summary": "s", "n": 3}]
    run(tmp_path, dataset=as_parquet(tmp_path, data), input=["document", "n"], keep=["n"])
    schema = pq.read_schema(tmp_path / "examples.parquet")
    extra = [pa.field("document", pa.string()), pa.field("n", pa.int64())]
    assert schema.equals(examples_schema(extra, ["document", "n"], ["n"]))
    entries = {"inputs": ["document", "n"], "keep": ["n"], "schema_version": SCHEMA_VERSION}
    assert read_metadata(schema) == entries
    column = pq.ParquetFile(tmp_path / "examples.parquet").metadata.row_group(0).column(1)
    assert column.compression == "ZSTD"


def test_row_groups_of_a_thousand(tmp_path: Path) -> None:
    numbers = [str(number) for number in range(2500)]
    table = pa.table({"id": numbers, "document": numbers, "summary": numbers})
    pq.write_table(table, tmp_path / "d.parquet")
    run(tmp_path, dataset=tmp_path / "d.parquet")
    metadata = pq.ParquetFile(tmp_path / "examples.parquet").metadata
    assert [metadata.row_group(i).num_rows for i in range(3)] == [1000, 1000, 500]
    run(tmp_path, dataset=tmp_path / "d.parquet", limit=1100, seed=0)  # a sample has few per batch
    metadata = pq.ParquetFile(tmp_path / "examples.parquet").metadata
    assert [metadata.row_group(i).num_rows for i in range(2)] == [1000, 100]
