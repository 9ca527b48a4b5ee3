"""The examples in docs/compare.md, run as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from stages.main import main
from tests.compare.systems import make_rows, write_scores
from tests.project import ROOT
from tests.score.sets import write_set

DOCS = ROOT / "docs/compare.md"


def write_predictions(folder: Path, noise: float, seed: int) -> None:
    """The sets of the example: 200 rows, a share ``noise`` of whose words is replaced."""
    rows = make_rows(200, noise, seed)
    predictions, references = [row[1] for row in rows], [row[2] for row in rows]
    folder.parent.mkdir()
    write_set(folder, predictions, references, text=True)


def write_grid(folder: Path) -> None:
    """The scores of the grid: the larger model and the later checkpoint are better."""
    noise = {"small/step-1000": 0.34, "small/step-2000": 0.28, "large/step-1000": 0.30,
             "large/step-2000": 0.24}  # fmt: skip
    for dataset, rows in (("news", 200), ("talk", 120)):
        for seed, (system, share) in enumerate(noise.items()):
            scores = folder / dataset / system
            scores.parent.mkdir(parents=True, exist_ok=True)
            write_scores(scores, make_rows(rows, share, seed), replicates=1000)


def test_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text("score: {}\n")
    write_predictions(Path("greedy/predictions"), noise=0.30, seed=1)
    write_predictions(Path("beam/predictions"), noise=0.28, seed=3)
    write_grid(Path("scores"))
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
    assert ran == 5
