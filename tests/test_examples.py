"""The job scripts in examples/, with stand-ins for the commands that a cluster has.

Quickly with commands that print themselves, and (slow) for real: what `srun` starts is `twophase`
and `torchrun`, and the array is one of processes on this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.config import load_section
from pipeline.predict.config import PredictConfig
from pipeline.predict.run import predict
from tests.examples import write_examples
from tests.models import TEXTS
from tests.predict.fake import Silent
from tests.project import ROOT, environment

SCRIPTS = sorted((ROOT / "examples").glob("*.sh"))


def write_commands(folder: Path, bodies: Mapping[str, str]) -> str:
    """A PATH on which ``bodies`` go before everything else."""
    folder.mkdir()
    for name, body in bodies.items():
        (folder / name).write_text(f"#!/bin/bash\n{body}\n")
        (folder / name).chmod(0o755)
    return f"{folder}{os.pathsep}{environment()['PATH']}"


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """Commands that print themselves; ``srun`` runs what it is given, without its own options."""
    path = write_commands(
        tmp_path / "bin",
        {
            "twophase": 'echo "twophase $*"',
            "torchrun": 'echo "torchrun $*"',
            "rsync": 'echo "rsync $*"',
            "scontrol": "echo node7; echo node8",
            "srun": 'while [[ $1 == --* ]]; do shift; done; "$@"',
        },
    )
    return {
        "PATH": path,
        "SLURM_ARRAY_TASK_ID": "3",
        "SLURM_JOB_ID": "5",
        "SLURM_JOB_NODELIST": "node[7-8]",
        "SLURM_NNODES": "2",
        "SLURM_TMPDIR": str(tmp_path / "disk"),
    }


def run(
    script: str, *arguments: str, env: dict[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    command = [shutil.which("bash") or "bash", str(ROOT / "examples" / script), *arguments]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)


def said(script: str, *arguments: str, env: dict[str, str], cwd: Path) -> list[str]:
    done = run(script, *arguments, env=env, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_array(cluster: dict[str, str], tmp_path: Path) -> None:
    shared = said("slurm.sh", env=cluster, cwd=tmp_path)
    assert shared == ["twophase predict --shard 3/8"]
    wider = said("slurm.sh", "-S", "a.b=c d", env=cluster | {"SHARDS": "64"}, cwd=tmp_path)
    assert wider == ["twophase predict --shard 3/64 -S a.b=c d"]
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
    (line,) = said("torchrun.sh", "-S", "a.b=c", env=cluster, cwd=tmp_path)
    assert line.startswith("torchrun --nnodes 2 --nproc-per-node 8 --rdzv-id 5 --rdzv-backend c10d")
    assert line.endswith("--rdzv-endpoint node7:20005 -m stages.predict -S a.b=c")


def test_the_scripts_are_executable_and_stand_in_the_docs() -> None:
    docs = (ROOT / "docs/running.md").read_text()
    for script in SCRIPTS:
        assert os.access(script, os.X_OK)
        assert f"examples/{script.name}" in docs
    assert "examples/ray_shards.py" in docs
    assert "examples/sweep" in docs


PARAMS = """
predict:
  template: "{document}"
  device: cpu
  chunk_rows: 2
  max_batch_rows: 2
  generation: {max_new_tokens: 60}
"""

# As a step that SLURM ends before its time: SIGTERM when the first chunk is there.
SRUN = """
while [[ $1 == --* ]]; do shift; done
"$@" &
step=$!
if [[ -n ${ENDED:-} ]]; then
    until compgen -G "$SLURM_TMPDIR/twophase/.partial/*/chunk-*" > /dev/null; do sleep 0.02; done
    kill -TERM $step
fi
wait $step
"""
# A task per node; what they print is not to mix.
SRUN_NODES = """
while [[ $1 == --* ]]; do shift; done
for node in $(seq "$SLURM_NNODES"); do "$@" 2> "node$node.log" & steps+=($!); done
status=0
for step in "${steps[@]}"; do wait $step || status=$?; done
exit $status
"""


@pytest.fixture
def place(tmp_path: Path, gpt2: Path) -> Path:
    (tmp_path / "params.yaml").write_text(PARAMS)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/model").symlink_to(gpt2)
    rows = [f"{row} {TEXTS[row % 2]}" for row in range(40)]
    write_examples(tmp_path / "data/examples.parquet", rows)
    return tmp_path


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def alone(place: Path) -> dict[str, bytes]:
    """The files of the set that one process makes: this one."""
    predict(
        load_section(place / "params.yaml", "predict", PredictConfig),
        model=place / "data/model",
        examples=place / "data/examples.parquet",
        predictions=place / "alone/predictions",
        telemetry=place / "alone/telemetry.csv",
        progress=Silent(),
    )
    return files_of(place / "alone/predictions")


@pytest.mark.slow
def test_an_array_for_real(place: Path) -> None:
    """Two jobs without a shared folder, one of them ended before its time; and with one."""
    env = environment() | {
        "PATH": write_commands(place / "bin", {"srun": SRUN}),
        "PYTHONPATH": str(ROOT),
        "SHARDS": "2",
    }

    def job(
        number: int, node: str, *arguments: str, **more: str
    ) -> subprocess.CompletedProcess[str]:
        (place / node).mkdir(exist_ok=True)
        of_slurm = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_TMPDIR": str(place / node)}
        return run("slurm.sh", *arguments, env=env | of_slurm | more, cwd=place)

    ended = job(1, "node1", SHARED="0", ENDED="1")
    assert ended.returncode == 143
    kept = len(list(place.glob("parts/1/*/chunk-*.parquet")))
    assert 1 <= kept < 10
    again = job(1, "node2", SHARED="0")  # on another node
    assert f"({10 - kept} made, {kept} kept)" in again.stdout
    refused = job(1, "node3", "merge")
    assert refused.returncode == 1
    assert not (place / "data/predictions").exists()
    assert job(2, "node3", SHARED="0").returncode == 0
    merged = job(1, "node1", "merge")
    assert merged.returncode == 0, merged.stderr
    expected = alone(place)
    assert files_of(place / "data/predictions") == expected

    shutil.rmtree(place / "data/predictions")
    shutil.rmtree(place / "data/.partial")
    for number in (2, 1):
        assert not (place / "data/predictions").exists()
        assert job(number, "node1").returncode == 0
    assert files_of(place / "data/predictions") == expected


@pytest.mark.slow
def test_nodes_for_real(place: Path) -> None:
    """Two agents of torchrun that meet at a port of this machine, with a rank each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = environment() | {
        "PATH": write_commands(
            place / "bin", {"srun": SRUN_NODES, "scontrol": "echo localhost; echo 127.0.0.1"}
        ),
        "PYTHONPATH": str(ROOT),
        "PORT": str(port),
        "SLURM_JOB_ID": "5",
        "SLURM_JOB_NODELIST": "node[7-8]",
        "SLURM_NNODES": "2",
        "SLURM_GPUS_ON_NODE": "1",
    }
    done = run("torchrun.sh", env=env, cwd=place)
    logs = [(place / f"node{node}.log").read_text() for node in (1, 2)]
    assert done.returncode == 0, logs
    assert done.stdout.count("40 rows in 20 chunks (20 made, 0 kept)") == 1
    ranks = [set(re.findall(r"rank (\d): chunk-\d", log)) for log in logs]
    assert sorted(map(tuple, ranks)) == [("0",), ("1",)]
    assert files_of(place / "data/predictions") == alone(place)


@pytest.mark.slow
def test_nodes_without_a_shared_folder_take_a_shard_each(place: Path) -> None:
    env = environment() | {"PYTHONPATH": str(ROOT)}
    for node in (1, 2):
        command = [
            *("torchrun", "--nproc-per-node", "2", "--rdzv-backend", "c10d"),
            *("--rdzv-endpoint", "127.0.0.1:0", "-m", "stages.predict", "--shard", f"{node}/2"),
            *("--predictions", f"node{node}/predictions", "--telemetry", f"node{node}/t.csv"),
        ]
        done = subprocess.run(command, env=env, cwd=place, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert set(re.findall(r"rank (\d): chunk-\d", done.stderr)) == {"0", "1"}
    parts = [str(path) for path in place.glob("node*/.partial/*")]
    assert len(parts) == 2
    done = subprocess.run(
        ["twophase", "merge", *parts, "--out", "data/predictions"],
        env=env, cwd=place, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert files_of(place / "data/predictions") == alone(place)
