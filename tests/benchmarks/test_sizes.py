"""The sizes of docs/deployment.md are what the script prints, on many rows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.corpus import Corpus
from benchmarks.sizes import Rows, column_bytes, measure_scores, measure_sets, size_bytes
from pipeline.inspect.verify import verify
from tests.pages import page, section
from tests.project import ROOT, environment


def tables(text: str) -> dict[str, list[str]]:
    """Title of a table -> what stands first in its lines."""
    found: dict[str, list[str]] = {}
    for title, body in re.findall(r"^\*\*(.+)\*\*\n\n((?:\|.*\n)+)", text, flags=re.MULTILINE):
        found[title] = [line.split(" | ")[0].strip("| ") for line in body.splitlines()[2:]]
    return found


def test_what_is_measured(tmp_path: Path) -> None:
    rows = Rows.make(Corpus("json"), tmp_path / "corpus", 40)
    assert 30 < rows.tokens < 60
    sets = dict(measure_sets(rows, tmp_path / "sets"))
    folder = tmp_path / "sets/False-sentence"
    (chunk,) = folder.glob("chunk-*.parquet")
    assert sets["token ids, sentence as reference"] == chunk.stat().st_size / 40
    assert sum(column_bytes(folder).values()) == chunk.stat().st_size
    assert sets["of these, `prediction_ids`"] < sets["token ids, sentence as reference"]
    for name in ("False-sentence", "True-document", "by-32"):
        assert not verify(tmp_path / "sets" / name).faults
    scores = dict(measure_scores(folder, tmp_path))
    assert scores["`data/scores`"] * 40 == size_bytes(tmp_path / "scores")
    assert size_bytes(chunk, chunk) == 2 * chunk.stat().st_size


@pytest.mark.slow
def test_the_page_shows_the_tables_of_the_script() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sizes", "--quick"],
        cwd=ROOT, env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = tables(done.stdout)
    assert len(printed) == 3
    assert tables(section(page("deployment.md"), "## How many bytes")) == printed
