"""Memory does not grow with the rows, in the parent or in a worker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.ingest.fields import Fields
from pipeline.ingest.ingest import ingest_fields

PROGRAM = r"""
import json, os, re, sys
from pathlib import Path
from pipeline.score.config import ScoreConfig
from pipeline.score.run import score

def peak():  # not ru_maxrss, which counts what the parent held when it started this process
    status = Path("/proc/self/status").read_text()
    return os.getpid(), int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

folder, n_jobs = Path(sys.argv[1]), int(sys.argv[2])
config = ScoreConfig(n_jobs=n_jobs, by=("topic",))
where = (folder / "set", folder / "scores", folder / "metrics.json", config)
for _ in range(2):  # the second time from the cache
    score(*where, cache=folder / "cache")
peaks = dict([peak()])
if n_jobs > 1:
    import joblib
    peaks |= dict(joblib.Parallel(n_jobs)(joblib.delayed(peak)() for _ in range(20)))
print(json.dumps(list(peaks.values())))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("n_jobs", "chunk_rows"), [(1, 300_000), (2, 30_000)])
def test_300_000_rows_take_less_than_a_gigabyte_in_any_process(
    tmp_path: Path, n_jobs: int, chunk_rows: int
) -> None:
    sentence = "the quick brown fox of row {} jumps over the lazy dog and some more words of it"
    lines = [
        json.dumps({"h": sentence.format(row), "r": sentence.format(row // 2), "topic": row % 5})
        for row in range(300_000)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    fields = Fields("h", ("r",), keep=("topic",))
    ingest_fields(str(tmp_path / "rows.jsonl"), fields, tmp_path / "set", chunk_rows=chunk_rows)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(n_jobs)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    peaks = json.loads(done.stdout)
    assert len(peaks) == (1 if n_jobs == 1 else 3)
    assert max(peaks) < 1e9, peaks
