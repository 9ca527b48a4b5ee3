"""What inspect shows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pipeline.errors import PredictionSetError
from pipeline.inspect.view import view, view_row
from pipeline.store.chunk import chunk_name
from stages.main import main
from tests.score.sets import PREDICTIONS, write_set

TOPICS = ["a", "b", None, "d", "e"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_set(tmp_path / "set", keep={"topic": TOPICS})
    return tmp_path / "set"


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["inspect", str(folder), *arguments])


def shown(folder: Path, *arguments: str) -> Any:
    result = run(folder, "--json", *arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_all_there_is_to_say(folder: Path) -> None:
    content = shown(folder)
    assert content == view(folder, 3)
    assert content["card"] == json.loads((folder / "run.json").read_bytes())
    assert (content["sealed"], content["missing"]) == (True, [])
    assert content["chunks"][2] == {
        "name": "chunk-00002.parquet", "first_row": 4, "rows": 1,
        "size_bytes": (folder / chunk_name(2)).stat().st_size,
    }  # fmt: skip
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert content["size_bytes"] == sum(path.stat().st_size for path in files)
    assert [row["prediction"] for row in content["first_rows"]] == PREDICTIONS[:2]
    assert len(shown(folder, "--rows", "1")["first_rows"]) == 1


def test_for_people(folder: Path) -> None:
    (folder / chunk_name(2)).unlink()
    result = run(folder)
    assert result.exit_code == 0, result.output
    for line in (
        "5 rows of ids, 2 per chunk",
        "  test: set",
        "  kept columns: topic",
        "2 of 3 chunks",
        "  chunk-00002.parquet  missing",
        "row 0, id id-0, eos",
        f"  prediction: {PREDICTIONS[0]}",
        "  reference:  the cat sat on a mat.",
    ):
        assert line in result.stdout.splitlines()
    assert any(
        line.startswith("  chunk-00001.parquet  rows 2–3  ") for line in result.stdout.splitlines()
    )
    assert all(len(line) <= 100 for line in result.stdout.splitlines()[1:])


@pytest.mark.parametrize("row", range(5))
def test_one_row_in_full(folder: Path, row: int) -> None:
    content = shown(folder, "--row", str(row))
    assert content == view_row(folder, row)
    assert list(content)[:4] == ["row", "id", "prediction", "prediction_ids"]
    assert (content["row"], content["prediction"]) == (row, PREDICTIONS[row])
    assert content["topic"] == TOPICS[row]
    text = run(folder, "--row", str(row)).stdout
    assert f"id: id-{row}" in text.splitlines()
    assert f"prediction: {PREDICTIONS[row] or json.dumps('')}" in text.splitlines()


def test_rows_that_are_not_there(folder: Path) -> None:
    with pytest.raises(PredictionSetError, match="has no row 5: its rows are 0 to 4"):
        view_row(folder, 5)
    (folder / chunk_name(1)).unlink()
    with pytest.raises(
        PredictionSetError, match=r"row 3 is in chunk-00001.parquet, which is missi"
    ):
        view_row(folder, 3)


def test_json_is_json_and_ids_stay_on_their_line(tmp_path: Path) -> None:
    write_set(tmp_path / "set", ["a"], [["b"]], keep={"n\nm": [math.nan]}, ids=["x\ny"])
    for arguments in ([], ["--row", "0"]):
        text = run(tmp_path / "set", *arguments, "--json").stdout
        json.loads(text, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    lines = run(tmp_path / "set").stdout.splitlines()
    assert 'row 0, id "x\\ny", eos' in lines
    assert '  kept columns: "n\\nm"' in lines
    assert '"n\\nm": NaN' in run(tmp_path / "set", "--row", "0").stdout.splitlines()


def test_what_is_damaged_is_said_and_the_rest_is_shown(folder: Path) -> None:
    path = folder / chunk_name(0)
    path.write_bytes(path.read_bytes()[:-3])
    result = run(folder)
    assert result.exit_code == 0
    assert "chunk-00000.parquet is damaged: its sha256" in result.stdout
    assert view(folder, 0)["unreadable"] is None
    refused = run(folder, "--row", "0")
    assert refused.exit_code == 1
    assert len(refused.stderr.splitlines()) == 1


def test_a_set_of_texts_and_one_that_is_unfinished(tmp_path: Path) -> None:
    write_set(tmp_path / "set", text=True, seal=False)
    assert view(tmp_path / "set", 1)["first_rows"][0]["prediction"] == PREDICTIONS[0]
    assert ", not sealed" in run(tmp_path / "set").stdout
    for path in (tmp_path / "set").glob("chunk-*"):
        path.unlink()
    content = shown(tmp_path / "set")
    assert (content["first_rows"], len(content["missing"])) == ([], 3)


def test_rows_that_do_not_decode_have_no_text(tmp_path: Path) -> None:
    write_set(tmp_path / "set", [[-1], None, [5, None], []], [["x"]] * 4, chunk_rows=4)
    found = view(tmp_path / "set", 4)["first_rows"]
    assert [row["prediction"] for row in found] == [None, None, None, ""]


def test_many_chunks_are_not_all_printed(tmp_path: Path) -> None:
    write_set(tmp_path / "set", ["a"] * 30, [["a"]] * 30, chunk_rows=1, text=True)
    lines = run(tmp_path / "set").stdout.splitlines()
    assert sum(line.startswith("  chunk-") for line in lines) == 20
    assert "  … 10 more …" in lines
    assert len(shown(tmp_path / "set")["chunks"]) == 30


def test_no_set(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "is not a prediction set" in result.stderr
