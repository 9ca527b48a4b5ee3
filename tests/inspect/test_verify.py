"""Every kind of fault, each named; and nothing said of a sound set."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.inspect.verify import verify
from pipeline.schema import with_metadata
from pipeline.store.card import RUN_CARD, RunCard
from pipeline.store.chunk import ChunkReader, chunk_name, file_sha256, write_chunk
from pipeline.store.prediction_set import SUMS, TOKENIZER_FILE
from stages.main import main
from tests.score.sets import seal_set, write_set


def run(folder: Path) -> Result:
    return CliRunner().invoke(main, ["verify", str(folder)])


def rewrite(folder: Path, chunk: int, seal: bool = True, **columns: list[Any]) -> None:
    """Replace columns of a chunk, and seal the set as if it had been written so."""
    card = RunCard.read(folder)
    path = folder / chunk_name(chunk)
    table = pq.ParquetFile(path).read()
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        field = table.schema.field(name)
        array = pa.array(values, field.type) if not isinstance(values, pa.Array) else values
        table = table.set_column(place, pa.field(name, array.type), array)
    write_chunk(path, table.replace_schema_metadata(None), card, chunk)
    if seal:
        seal_set(folder)


@pytest.mark.parametrize("text", [True, False])
def test_a_sound_set(tmp_path: Path, text: bool) -> None:
    write_set(tmp_path / "set", text=text, keep={"topic": ["a", "b", None, "d", "e"]})
    result = run(tmp_path / "set")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "note: empty predictions: 1",
        f"{tmp_path / 'set'}: 5 rows in 3 chunks, no fault",
    ]


def test_a_set_that_was_ingested_is_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("h").write_text("a\nb\n")
    ingest = ["ingest", "--hypotheses", "h", "--reference", "h", "--out", "set"]
    assert CliRunner().invoke(main, ingest).exit_code == 0
    assert run(Path("set")).stdout == "set: 2 rows in 1 chunks, no fault\n"


REASONS = pa.array(["eos", None]).dictionary_encode()


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"id": ["a", None]}, "id is null in row 3"),
        ({"prediction_ids": [None, None]}, "prediction_ids is null in rows 2, 3"),
        ({"prediction_ids": [[1, None], [2]]}, "a token id is null in row 2"),
        ({"prediction_ids": [[], [2, -100, -1]]}, "a token id is negative in row 3"),
        ({"finish_reason": REASONS}, "finish_reason is null in row 3"),
        ({"truncated": [None, True]}, "truncated is null in row 2"),
        ({"row": [2, 4]}, "chunk-00001.parquet is damaged: its rows do not count on from 2"),
        ({"row": [3, 2]}, "its rows do not count on from 2"),
        ({"prompt_tokens": pa.array(["1", "2"])}, "column prompt_tokens is string"),
        ({"topic": pa.array([1, 2])}, "column 'topic' is int64, but string in chunk-00000"),
        ({"id": ["x", "x"]}, "the id 'x' stands in rows 2 and 3"),
        ({"id": ["id-0", "x"]}, "the id 'id-0' stands in rows 0 and 2"),
        ({"id": pa.array([b"\xff", b"a"]).view(pa.string())}, "chunk-00001.*[Ii]nvalid UTF8"),
    ],
)  # fmt: skip
def test_faults_in_rows(tmp_path: Path, columns: dict[str, Any], fault: str) -> None:
    write_set(tmp_path / "set", keep={"topic": list("abcde")})
    rewrite(tmp_path / "set", 1, **columns)
    result = run(tmp_path / "set")
    assert result.exit_code == 1
    faults = [line for line in result.stdout.splitlines() if line.startswith("fault: ")]
    assert len(faults) == 1, result.stdout
    assert re.search(fault, faults[0]), result.stdout
    assert result.stdout.splitlines()[-1].endswith("set: 1 fault")


def test_each_fault_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    write_set(folder, chunk_rows=1)
    rewrite(folder, 0, prediction_ids=[[-1]], id=[None])
    (folder / chunk_name(1)).unlink()
    path = folder / chunk_name(2)
    path.write_bytes(path.read_bytes()[:-9])
    path = folder / TOKENIZER_FILE
    path.write_text("{}")
    write_set(tmp_path / "other", chunk_rows=1)
    shutil.copy(tmp_path / "other" / chunk_name(4), folder / chunk_name(4))
    faults = "\n".join(verify(folder).faults)
    for fault in (
        "chunk-00000.parquet: id is null in row 0",
        "chunk-00000.parquet: a token id is negative in row 0",
        r"1 of 5 chunks are missing \(chunk-00001.parquet\)",
        "chunk-00002.parquet: its sha256 is not the one",
        "chunk-00002.parquet is damaged",
        "tokenizer/tokenizer.json: its sha256 is not the one",
        "tokenizer.json is not a tokenizer",
        "chunk-00004.parquet: its sha256 is not the one",
        "chunk-00004.parquet belongs to run",
    ):
        assert re.search(fault, faults), fault
    assert len(faults.splitlines()) == 9, faults


def test_many_rows_of_one_fault_are_one_line(tmp_path: Path) -> None:
    write_set(tmp_path / "set", [[-1]] * 9, [["x"]] * 9, chunk_rows=9)
    (fault,) = verify(tmp_path / "set").faults
    assert fault == "chunk-00000.parquet: a token id is negative in rows 0, 1, 2, 3, 4 and 4 more"
    write_set(tmp_path / "ids", ["a"] * 14, [["x"]] * 14, chunk_rows=14, text=True)
    rewrite(tmp_path / "ids", 0, id=[str(n // 2) for n in range(14)])
    faults = verify(tmp_path / "ids").faults
    assert len(faults) == 6
    assert faults[-1] == "2 more ids stand in two rows"


def test_what_score_has_a_rule_for_is_a_note(tmp_path: Path) -> None:
    predictions = [[5, 99_999], [99_998], [], [6]]
    references: list[Any] = [["x", None], None, [" "], ["x"]]
    write_set(tmp_path / "set", predictions, references)
    (tmp_path / "set/notes.txt").write_text("mine")
    result = run(tmp_path / "set")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:-1] == [
        "note: notes.txt is not listed in SHA256SUMS",
        "note: token ids beyond the vocabulary: 2",
        "note: empty predictions: 2",
        "note: null references: 1",
        "note: rows without references: 1",
        "note: rows with nothing but blank references: 1",
    ]


def test_faults_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    write_set(folder, seal=False)
    assert verify(folder).faults == [
        "SHA256SUMS is missing: the set was never sealed, so altered bytes may go unnoticed"
    ]
    seal_set(folder)
    sums = (folder / SUMS).read_text()
    (folder / SUMS).write_text(sums + f"{'0' * 64}  tokenizer/more.json\n")
    assert verify(folder).faults == ["tokenizer/more.json is missing, but SHA256SUMS lists it"]
    (folder / SUMS).write_text("".join(sums.splitlines(keepends=True)[1:]))
    assert verify(folder).faults == ["chunk-00000.parquet is not listed in SHA256SUMS"]
    (folder / "more.txt").write_text("x")
    digest = file_sha256(folder / "more.txt")
    (folder / SUMS).write_text(f"{sums}{digest}  more.txt\n")
    (fault,) = verify(folder).faults  # as score has it
    assert "does not list just the files of this set (more.txt)" in fault
    (folder / "more.txt").unlink()
    (folder / SUMS).write_text("garbage\n")
    (fault,) = verify(folder).faults
    assert "SHA256SUMS line 1 is damaged" in fault
    (folder / SUMS).write_text(sums)
    shutil.copy(folder / chunk_name(0), folder / chunk_name(7))
    assert "run.json plans 3 chunks, but there is chunk-00007.parquet" in verify(folder).faults
    (folder / chunk_name(7)).unlink()
    (folder / TOKENIZER_FILE).unlink()
    assert verify(folder).faults[-1] == (
        "tokenizer/tokenizer.json is missing: the ids cannot be decoded"
    )


def test_what_is_no_set_is_an_error(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "is not a prediction set" in result.stderr
    write_set(tmp_path / "set")
    (tmp_path / "set" / RUN_CARD).write_text("{}")
    result = run(tmp_path / "set")
    assert result.exit_code == 1
    assert "run.json is damaged" in result.stderr


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32))
def test_no_flipped_or_cut_byte_goes_unnoticed(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "set"
    if not folder.exists():
        write_set(folder)
    rng = random.Random(seed)
    path = rng.choice([path for path in sorted(folder.rglob("*")) if path.is_file()])
    sound = path.read_bytes()
    content = bytearray(sound)
    if rng.random() < 0.2:
        del content[rng.randrange(len(content)) :]
    else:
        content[rng.randrange(len(content))] ^= rng.randrange(1, 256)
    path.write_bytes(content)
    try:
        assert run(folder).exit_code == 1, path
    finally:
        path.write_bytes(sound)


def test_every_row_group_is_read(tmp_path: Path) -> None:
    card = write_set(tmp_path / "set", ["a"] * 5, [["x"]] * 5, chunk_rows=5, text=True)
    path = tmp_path / "set" / chunk_name(0)
    table = ChunkReader(path, card, 0).read()
    bad = table.set_column(1, table.schema.field("id"), pa.array([*"abcd", None], pa.string()))
    schema = with_metadata(bad.schema, {"fingerprint": card.fingerprint, "chunk": 0})
    with pq.ParquetWriter(path, schema) as writer:
        for row in range(5):
            writer.write_table(bad.slice(row, 1).cast(schema))
    seal_set(tmp_path / "set")
    assert verify(tmp_path / "set").faults == ["chunk-00000.parquet: id is null in row 4"]
    assert verify(tmp_path / "set").rows == 5
