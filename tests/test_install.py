"""The base install, in an environment of its own, is all that scoring needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import ROOT, copy_project, run

HEAVY = (
    *("torch", "transformers", "datasets", "evaluate", "pandas", "dvc", "matplotlib"),
    *("s3fs", "distributed"),
)


@pytest.mark.slow
def test_the_base_install_scores(tmp_path: Path, gpt2: Path) -> None:
    project = copy_project(tmp_path / "project", gpt2)
    for stage in ("fetch", "prepare", "predict", "score"):
        run(project, sys.executable, "-m", f"stages.{stage}")

    subprocess.run([sys.executable, "-m", "venv", tmp_path / "base"], check=True)
    python = str(tmp_path / "base/bin/python")
    constraints = str(ROOT / "constraints.txt")
    install = [python, "-m", "pip", "install", "--quiet", "--constraint", constraints, str(project)]
    subprocess.run(install, check=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    check = (
        "import importlib.util as u, sys;"
        f"sys.exit(', '.join(name for name in {HEAVY} if u.find_spec(name)) or 0)"
    )
    subprocess.run([python, "-c", check], cwd=elsewhere, check=True)

    twophase = str(tmp_path / "base/bin/twophase")
    predictions, params = str(project / "data/predictions"), str(project / "params.yaml")
    run(elsewhere, twophase, "score", "--predictions", predictions, "--params", params)
    for name in ("metrics.json", "data/scores/summary.json"):
        assert (elsewhere / name).read_bytes() == (project / name).read_bytes()
    assert "rouge1" in run(elsewhere, twophase, "report", "--show").stdout

    (elsewhere / "h.txt").write_text("a\nb\n")
    files = ("--hypotheses", "h.txt", "--reference", "h.txt")
    run(elsewhere, twophase, "ingest", *files, "--out", "ingested")
    for command in ("inspect", "verify"):
        run(elsewhere, twophase, command, "ingested")
    run(elsewhere, twophase, "score", "--predictions", "ingested", "--params", params)

    refused = run(elsewhere, twophase, "predict", "--params", params, check=False)
    assert refused.returncode == 1
    assert "pip install -c constraints.txt '.[predict]'" in refused.stderr
    assert "dvc repro --pull --allow-missing score" in refused.stderr
    page = run(elsewhere, twophase, "report", check=False)
    assert page.returncode == 1
    assert "pip install -c constraints.txt '.[report]'" in page.stderr
