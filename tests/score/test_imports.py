"""What phase two may never import, in the parent or in a worker: seen in a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from pipeline.score.metrics import METRICS
from pipeline.score.metrics.base import ColumnMetric
from tests.score.sets import write_set

FORBIDDEN = {"torch", "transformers", "datasets", "evaluate", "pandas", "pyarrow.dataset"}
# Only for URLs and clusters.
FORBIDDEN |= {"fsspec", "s3fs", "botocore", "distributed"}
# Only where rouge-score-rs is missing.
FALLBACK = {"rouge_score", "nltk"}

PROGRAM = """
import json, sys
from pathlib import Path
from pipeline.score import pool, run
from pipeline.score.config import ScoreConfig

folder, n_jobs, metrics = Path(sys.argv[1]), int(sys.argv[2]), tuple(sys.argv[3:])
run.CALL_ROWS = 1
config = ScoreConfig(n_jobs=n_jobs, metrics=metrics)
where = (folder / "set", folder / "scores", folder / "metrics.json", config)
for _ in range(2):  # the second time from the cache
    run.score(*where, worker_rows=0, cache=folder / "cache")
loaded = {"parent": sorted(sys.modules)}
if n_jobs > 1:
    import joblib

    def modules():
        import os, sys
        return os.getpid(), sorted(sys.modules)

    # joblib keeps its workers: these ran the chunks.
    for pid, names in joblib.Parallel(n_jobs)(joblib.delayed(modules)() for _ in range(20)):
        loaded[str(pid)] = names
print(json.dumps(loaded))
"""


def _loaded(
    folder: Path, n_jobs: int, metrics: Iterable[str] = ("rouge", "bleu")
) -> dict[str, set[str]]:
    write_set(folder / "set", chunk_rows=1)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(folder), str(n_jobs), *metrics],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {process: set(names) for process, names in json.loads(done.stdout).items()}


def test_in_this_process(tmp_path: Path) -> None:
    (modules,) = _loaded(tmp_path, 1).values()
    assert "tokenizers" in modules
    assert modules & (FORBIDDEN | FALLBACK) == set()
    assert "joblib" not in modules  # 0.2 s that a small set does not need
    # Imported by the metrics that need them, when they compute.
    assert modules & {"jiwer", "rapidfuzz"} == set()


def test_every_metric_of_texts(tmp_path: Path) -> None:
    texts = [name for name, kind in METRICS.items() if not issubclass(kind, ColumnMetric)]
    (modules,) = _loaded(tmp_path, 1, texts).values()
    assert {"jiwer", "rapidfuzz"} <= modules
    assert modules & (FORBIDDEN | FALLBACK) == set()


def test_with_two_workers(tmp_path: Path) -> None:
    loaded = _loaded(tmp_path, 2)
    workers = [modules for process, modules in loaded.items() if process != "parent"]
    assert any("pipeline.score.chunk" in modules for modules in workers)
    for modules in loaded.values():
        assert modules & (FORBIDDEN | FALLBACK) == set()


COMMAND = """
import atexit, json, sys
from stages.main import main

atexit.register(lambda: print(json.dumps(sorted(sys.modules))))
sys.argv = ["twophase", "score", "--predictions", "set"]
main()
"""
# With what they import themselves, all that scoring a small set needs from outside.
LIBRARIES = {"click", "msgspec", "numpy", "pyarrow", "rouge_score_rs", "sacrebleu", "tokenizers"}


def test_from_the_command_line_on_352_rows(tmp_path: Path) -> None:
    write_set(tmp_path / "set", ["the cat sat"] * 352, [["the cat sat on it"]] * 352, chunk_rows=32)
    (tmp_path / "params.yaml").write_text("score: {}\n")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", COMMAND],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    *table, listed = done.stdout.splitlines()
    assert any(line.split() == ["rows", "352"] for line in table)
    modules = set(json.loads(listed))
    assert modules & (FORBIDDEN | FALLBACK) == set()
    assert modules >= LIBRARIES
    assert {name.partition(".")[0] for name in modules} & {"joblib", "matplotlib", "dvc"} == set()
    assert (tmp_path / "metrics.json").exists()
