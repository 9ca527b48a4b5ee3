"""The job scripts in examples/, with stand-ins for the commands that a cluster has."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.project import ROOT

SCRIPTS = sorted((ROOT / "examples").glob("*.sh"))


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """Commands that print themselves; ``srun`` runs what it is given, without its own options."""
    commands = tmp_path / "bin"
    commands.mkdir()
    bodies = {
        "twophase": 'echo "twophase $*"',
        "torchrun": 'echo "torchrun $*"',
        "rsync": 'echo "rsync $*"',
        "scontrol": "echo node7; echo node8",
        "srun": 'while [[ $1 == --* ]]; do shift; done; "$@"',
    }
    for name, body in bodies.items():
        (commands / name).write_text(f"#!/bin/bash\n{body}\n")
        (commands / name).chmod(0o755)
    return {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "SLURM_ARRAY_TASK_ID": "3",
        "SLURM_JOB_ID": "5",
        "SLURM_JOB_NODELIST": "node[7-8]",
        "SLURM_NNODES": "2",
        "SLURM_TMPDIR": str(tmp_path / "disk"),
    }


def said(script: str, *arguments: str, env: dict[str, str], cwd: Path) -> list[str]:
    command = [shutil.which("bash") or "bash", str(ROOT / "examples" / script), *arguments]
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_array(cluster: dict[str, str], tmp_path: Path) -> None:
    shared = said("slurm.sh", env=cluster, cwd=tmp_path)
    assert shared == ["twophase predict --shard 3/8"]
    disk = tmp_path / "disk/twophase"
    assert said("slurm.sh", env=cluster | {"SHARED": "0"}, cwd=tmp_path) == [
        f"rsync -a parts/3/ {disk}/.partial/",
        f"twophase predict --shard 3/8 --predictions {disk}/predictions "
        f"--telemetry {disk}/telemetry.csv",
        f"rsync -a {disk}/.partial/ parts/3/",
    ]
    for folder in ("parts/1/aaaa", "parts/3/aaaa"):
        (tmp_path / folder).mkdir(parents=True)
    assert said("slurm.sh", "merge", env=cluster, cwd=tmp_path) == [
        "twophase merge parts/1/aaaa parts/3/aaaa --out data/predictions "
        "--telemetry data/telemetry.csv"
    ]


def test_the_nodes(cluster: dict[str, str], tmp_path: Path) -> None:
    (line,) = said("torchrun.sh", env=cluster, cwd=tmp_path)
    assert line.startswith("torchrun --nnodes 2 --nproc-per-node 8 --rdzv-id 5 --rdzv-backend c10d")
    assert line.endswith("--rdzv-endpoint node7:29500 -m stages.predict")


def test_the_scripts_are_executable_and_stand_in_the_docs() -> None:
    docs = (ROOT / "docs/running.md").read_text()
    for script in SCRIPTS:
        assert os.access(script, os.X_OK)
        assert f"examples/{script.name}" in docs
