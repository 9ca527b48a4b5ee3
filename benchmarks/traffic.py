"""What DVC moves between two clones and a remote, step by step, for a set that is there already.

Phase one is not run: its outputs are put in place and recorded by ``dvc commit``, which is what
DVC would have recorded. All else is done by the commands of docs/two-machines.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Set
from pathlib import Path

import pyarrow.parquet as pq
from ruamel.yaml import YAML

from pipeline.schema import examples_schema

ROOT = Path(__file__).parents[1]
PARTS = ("pipeline", "stages", "dvc.yaml", "params.yaml", ".dvc/config", ".dvcignore", ".gitignore")
MAKE_SCORE = (
    ("dvc", "pull", "--allow-missing", "data/scores", "data/plots"),
    ("dvc", "repro", "--pull", "--allow-missing", "score"),
)


def measure_traffic(predictions: Path, place: Path) -> Iterator[tuple[str, int, int]]:
    """Yield step, bytes moved and objects moved.

    Args:
        predictions: a sealed set of token ids.
        place: a folder to make, for the clones and the remote.
    """
    first, second, remote = place / "first", place / "second", place / "remote"
    _make_project(first, predictions)
    _run(first, "dvc", "remote", "add", "-d", "store", str(remote))
    for stage in ("score", "report"):
        _run(first, sys.executable, "-m", f"stages.{stage}")
    _run(first, "dvc", "commit", "--force")
    _commit(first, "Predict")

    held = _Objects(remote)
    _run(first, "dvc", "push")
    yield "GPU machine: `dvc push` after a run", *held.grown()

    _run(place, "git", "clone", "-q", str(first), str(second))
    _run(second, "git", "checkout", "-q", "-b", "scoring")
    cache = _Objects(second / ".dvc/cache")
    _make_score(second)
    yield "CPU machine: `make score` the first time, nothing changed", *cache.grown()

    params = second / "params.yaml"
    params.write_text(params.read_text().replace("[rouge, bleu]", "[rouge, bleu, chrf]"))
    _make_score(second)
    # What score put into the cache itself was not moved.
    made = _made_by_score(second)
    yield "CPU machine: `make score` after a change of metrics", *cache.grown(without=made)

    _commit(second, "chrF")
    _run(second, "dvc", "push")
    yield "CPU machine: `dvc push`", *held.grown()

    back = _Objects(first / ".dvc/cache")
    back.grown()
    _run(first, "git", "pull", "-q", str(second), "scoring")
    _run(first, "dvc", "pull")
    yield "GPU machine: `dvc pull`", *back.grown()


class _Objects:
    """The objects in a cache or remote, and how they grow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "files/md5"
        self.known: set[Path] = set()

    def grown(self, without: Set[str] = frozenset()) -> tuple[int, int]:
        """Bytes and number of the objects that were not there the last time.

        Args:
            without: md5 of objects that do not count.
        """
        objects = {path for path in self.folder.glob("*/*") if path.is_file()}
        new = objects - self.known
        self.known = objects
        new = {path for path in new if path.parent.name + path.name not in without}
        return sum(path.stat().st_size for path in new), len(new)


def _made_by_score(folder: Path) -> set[str]:
    outs = YAML(typ="safe").load(folder / "dvc.lock")["stages"]["score"]["outs"]
    paths = [path for out in outs for path in (folder / out["path"]).rglob("*") if path.is_file()]
    return {out["md5"] for out in outs} | {
        hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() for path in paths
    }


def _make_project(folder: Path, predictions: Path) -> None:
    """A project in which fetch, prepare and predict left what they leave."""
    for name in PARTS:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    data = folder / "data"
    data.mkdir()
    shutil.copy(ROOT / "data/.gitignore", data / ".gitignore")
    shutil.copytree(predictions, data / "predictions")
    (data / "model").mkdir()
    (data / "model/config.json").write_text("{}\n")
    (data / "source").write_text("{}\n")
    (data / "telemetry.csv").write_text("chunk,rss_peak_bytes\n0,1\n")
    _write_examples(predictions, data / "examples.parquet")
    for command in (
        ("git", "init", "-q"),
        ("git", "config", "user.email", "benchmark@example.org"),
        ("git", "config", "user.name", "benchmark"),
    ):
        _run(folder, *command)
    _commit(folder, "Start")


def _write_examples(predictions: Path, path: Path) -> None:
    """The references of the set; inputs would add their own size."""
    tables = [
        pq.ParquetFile(chunk).read(["row", "id", "references"])
        for chunk in sorted(predictions.glob("chunk-*.parquet"))
    ]
    schema = examples_schema([], [], [])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table.cast(schema))


def _make_score(folder: Path) -> None:
    for command in MAKE_SCORE:
        _run(folder, *command)


def _commit(folder: Path, message: str) -> None:
    _run(folder, "git", "add", "-A")
    identity = ("-c", "user.email=benchmark@example.org", "-c", "user.name=benchmark")
    _run(folder, "git", *identity, "commit", "-qm", message)


def _run(folder: Path, *command: str) -> None:
    bin_folder = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(json.dumps(command) + f" failed:\n{done.stdout}{done.stderr}")
