"""The example in docs/compare.md, run as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from stages.main import main
from tests.compare.systems import make_rows
from tests.project import ROOT
from tests.score.sets import write_set

DOCS = ROOT / "docs/compare.md"


def write_predictions(folder: Path, noise: float, seed: int) -> None:
    """The sets of the example: 200 rows, a share ``noise`` of whose words is replaced."""
    rows = make_rows(200, noise, seed)
    predictions, references = [row[1] for row in rows], [row[2] for row in rows]
    folder.parent.mkdir()
    write_set(folder, predictions, references, text=True)


def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text("score: {}\n")
    write_predictions(Path("greedy/predictions"), noise=0.30, seed=1)
    write_predictions(Path("beam/predictions"), noise=0.28, seed=3)
    text = DOCS.read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    ran = 0
    for number, (language, block) in enumerate(blocks):
        if language != "bash":
            continue
        lines = block.replace("\\\n", "").splitlines()
        results = [CliRunner().invoke(main, shlex.split(line)[1:]) for line in lines]
        assert [result.exit_code for result in results] == [0] * len(lines), results[-1].output
        ran += len(lines)
        if number + 1 < len(blocks) and blocks[number + 1][0] in ("", "markdown"):
            assert results[-1].stdout == blocks[number + 1][1]
    assert ran == 4
