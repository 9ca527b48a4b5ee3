"""The README's own commands, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from stages.main import SUBCOMMANDS
from tests.project import ROOT, environment

README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_every_command_stands_in_the_readme() -> None:
    for name in SUBCOMMANDS:
        assert f"`{name}`" in README or f"twophase {name}" in README, name


def test_the_example_of_params_is_accepted(tmp_path: Path) -> None:
    from pipeline.config import load_section
    from pipeline.fetch.config import FetchConfig
    from pipeline.predict.config import PredictConfig
    from pipeline.predict.template import Template
    from pipeline.prepare.config import PrepareConfig

    (example,) = blocks("yaml")
    path = tmp_path / "params.yaml"
    path.write_text(example)
    load_section(path, "fetch", FetchConfig)
    prepare = load_section(path, "prepare", PrepareConfig)
    predict = load_section(path, "predict", PredictConfig)
    assert not isinstance(prepare.input, str)
    Template(predict.template, prepare.input)


def names_in(table: str) -> list[str]:
    return [re.split(r"\s{2,}", line.strip())[0] for line in table.splitlines()[1:]]


@pytest.mark.slow
def test_the_quick_start(tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "-q", ROOT, tmp_path / "clone"], check=True)
    env = environment()
    for name in (
        *("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "VIRTUAL_ENV", "OMP_NUM_THREADS"),
        *("MAKEFLAGS", "MAKELEVEL", "MFLAGS"),  # of the make that runs this test
    ):
        env.pop(name, None)
    env["PATH"] = os.pathsep.join(p for p in env["PATH"].split(os.pathsep) if ".venv" not in p)

    def make_repro() -> str:
        command = next(line for line in blocks("bash")[0].splitlines() if "repro" in line)
        done = subprocess.run(
            command, shell=True, cwd=tmp_path / "clone", env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    first = make_repro()
    table = re.search(r"<!-- output of make repro -->\n```\n(.*?)```", README, flags=re.DOTALL)
    assert table is not None
    printed = first[first.rindex("\n   ") + 1 :]
    assert names_in(printed) == names_in(table[1])
    assert "Data and pipelines are up to date." in make_repro()
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=tmp_path / "clone", capture_output=True, text=True
    )
    # A run leaves what is worth committing, and nothing else.
    assert {line[3:] for line in status.stdout.splitlines()} <= {"dvc.lock", "metrics.json"}
