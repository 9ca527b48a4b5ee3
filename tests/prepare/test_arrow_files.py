"""Parquet files and ``save_to_disk`` folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import DataError
from tests.prepare.files import pair, rows, run, write_parquet


def test_carried_columns_keep_their_type(tmp_path: Path) -> None:
    columns = {
        "id": pa.array([7, 8]),
        "document": pa.array(["a", "b"], pa.large_string()),
        "summary": pa.array(["s", "t"]).dictionary_encode(),
        "n": pa.array([1, None], pa.int16()),
        "when": pa.array([0, 1], pa.timestamp("ns")),
        "audio": pa.array([{"bytes": b"x", "path": None}] * 2),
    }
    path = write_parquet(tmp_path / "d.parquet", **columns)
    run(tmp_path, dataset=path, input=["document", "audio"], keep=["n", "when"])
    schema = pq.read_schema(tmp_path / "examples.parquet")
    for name in ("document", "audio", "n", "when"):
        assert schema.field(name).type == columns[name].type
    assert [row["id"] for row in rows(tmp_path)] == ["7", "8"]
    assert [row["references"] for row in rows(tmp_path)] == [["s"], ["t"]]


@pytest.mark.parametrize("type_", [pa.float16(), pa.float32(), pa.float64()])
def test_an_input_that_is_not_finite(type_: pa.DataType, tmp_path: Path) -> None:
    for value, found in ((float("nan"), "NaN"), (float("inf"), "infinite")):
        numbers = pa.array([1.0, value], pa.float64()).cast(type_)
        path = write_parquet(tmp_path / "d.parquet", id=["a", "b"], x=numbers, summary=["s", "t"])
        message = rf"d.parquet row 1 \(id 'b'\): the input column 'x' is {found}; fill it"
        with pytest.raises(DataError, match=message):
            run(tmp_path, dataset=path, input="x")


def test_the_limit_lies_inside_a_row_group(tmp_path: Path) -> None:
    numbers = [str(number) for number in range(30)]
    table = pa.table({"id": numbers, "document": numbers, "summary": numbers})
    pq.write_table(table, tmp_path / "d.parquet", row_group_size=7)
    run(tmp_path, dataset=tmp_path / "d.parquet", limit=9)
    assert [row["id"] for row in rows(tmp_path)] == numbers[:9]
    run(tmp_path, dataset=tmp_path / "d.parquet", limit=99)
    assert [row["id"] for row in rows(tmp_path)] == numbers


def test_a_file_that_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "d.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match="d.parquet cannot be read as Parquet"):
        run(tmp_path, dataset=tmp_path / "d.parquet")


def test_damage_in_the_middle_is_named(tmp_path: Path) -> None:
    texts = [str(number) * 50 for number in range(2000)]
    table = pa.table({"id": texts, "document": texts, "summary": texts})
    path = tmp_path / "d.parquet"
    pq.write_table(table, path, row_group_size=1000, compression="zstd")
    content = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content[start : start + 60] = b"\xff" * 60
    path.write_bytes(content)
    with pytest.raises(DataError, match="d.parquet cannot be read from row 1000 on"):
        run(tmp_path, dataset=path)
    assert not (tmp_path / "examples.parquet").exists()


def test_strings_that_are_not_utf8(tmp_path: Path) -> None:
    invalid = pa.array([b"caf\xe9"], pa.binary()).view(pa.string())
    path = write_parquet(tmp_path / "d.parquet", id=["a"], document=invalid, summary=["s"])
    with pytest.raises(DataError, match="cannot be read from row 0 on .*Invalid UTF8"):
        run(tmp_path, dataset=path)


def test_a_column_named_twice(tmp_path: Path) -> None:
    arrays = [pa.array(["a"])] * 4
    table = pa.Table.from_arrays(arrays, names=["id", "document", "summary", "document"])
    pq.write_table(table, tmp_path / "d.parquet")
    with pytest.raises(DataError, match="d.parquet has two columns 'document'"):
        run(tmp_path, dataset=tmp_path / "d.parquet")


def test_no_rows(tmp_path: Path) -> None:
    empty = pa.array([], pa.string())
    path = write_parquet(tmp_path / "d.parquet", id=empty, document=empty, summary=empty)
    with pytest.raises(DataError, match="has no rows; there is nothing to evaluate"):
        run(tmp_path, dataset=path)


def test_a_split_that_is_not_there(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    data = Dataset.from_list([pair(0)])
    DatasetDict({"train": data, "dev": data}).save_to_disk(tmp_path / "saved")
    with pytest.raises(DataError, match="saved has no split 'test'; it has train, dev: name one"):
        run(tmp_path, dataset=tmp_path / "saved")
    assert run(tmp_path, dataset=tmp_path / "saved", split="dev").where.endswith("saved (dev)")


def test_a_saved_selection_keeps_its_order(tmp_path: Path) -> None:
    from datasets import Dataset

    data = Dataset.from_list([pair(number) for number in range(10)])
    data.select([7, 3, 5]).save_to_disk(tmp_path / "saved")
    run(tmp_path, dataset=tmp_path / "saved")
    assert [row["id"] for row in rows(tmp_path)] == ["id-7", "id-3", "id-5"]


def test_another_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="folder is a folder, but not one that save_to_disk"):
        run(tmp_path, dataset=tmp_path / "folder")


SHARDS = [f"data-0000{shard}-of-00003.arrow" for shard in range(3)]


@pytest.mark.parametrize("lost", [[SHARDS[1]], SHARDS[1:], ["dataset_info.json"]])
@pytest.mark.parametrize("splits", [False, True])
def test_a_saved_folder_that_lost_files(lost: list[str], splits: bool, tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    saved = tmp_path / "saved"
    data = Dataset.from_list([pair(number) for number in range(9)])
    if splits:
        DatasetDict({"test": data}).save_to_disk(saved, num_shards={"test": 3})
        lost = [f"test/{name}" for name in lost]
    else:
        data.save_to_disk(saved, num_shards=3)
    for name in lost:
        (saved / name).unlink()
    message = f"saved lacks {', '.join(lost)}, part of .*; copy the folder again"
    with pytest.raises(DataError, match=message):
        run(tmp_path, dataset=saved)


def test_a_saved_folder_whose_split_is_not_there(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    saved = tmp_path / "saved"
    DatasetDict({"test": Dataset.from_list([pair(0)])}).save_to_disk(saved)
    shutil.rmtree(saved / "test")
    with pytest.raises(DataError, match="lacks test/dataset_info.json, test/state.json, part of"):
        run(tmp_path, dataset=saved)


@pytest.mark.parametrize("content", ["", "[]", "{}"])
def test_a_saved_folder_with_a_bad_note(content: str, tmp_path: Path) -> None:
    from datasets import Dataset

    saved = tmp_path / "saved"
    Dataset.from_list([pair(0)]).save_to_disk(saved)
    (saved / "state.json").write_text(content)
    with pytest.raises(DataError, match="saved cannot be loaded: .*; save or copy it again"):
        run(tmp_path, dataset=saved)


def test_a_saved_shard_that_was_cut(tmp_path: Path) -> None:
    from datasets import Dataset

    saved = tmp_path / "saved"
    Dataset.from_list([pair(0)]).save_to_disk(saved)
    shard = next(saved.glob("*.arrow"))
    shard.write_bytes(shard.read_bytes()[:100])
    with pytest.raises(DataError, match="saved cannot be "):
        run(tmp_path, dataset=saved)
