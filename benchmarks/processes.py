"""The ``twophase score`` command, watched from outside: its time and its memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

_POLL_S = 0.05


def peak_memory(folder: Path, repeats: int) -> dict[str, Any]:
    """GB of the largest process of ``twophase score`` with two workers."""
    with tempfile.TemporaryDirectory() as out:
        command = _command(folder, Path(out), "-S", "score.n_jobs=2")
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            peaks: dict[int, int] = {}
            while process.poll() is None:
                _watch(psutil.Process(process.pid), peaks)
                time.sleep(_POLL_S)
        elapsed = time.perf_counter() - start
        if process.returncode:
            sys.exit(f"score failed with {process.returncode}")
    shown = ", ".join(f"{peak / 1e9:.2f}" for peak in peaks.values())
    return {
        "value": max(peaks.values()) / 1e9,
        "detail": f"{len(peaks)} processes ({shown} GB), {elapsed:.0f} s",
    }


def command_line(folder: Path, repeats: int) -> dict[str, Any]:
    """Seconds from the shell to ``metrics.json``."""
    times, processor = [], []
    for _ in range(2 * repeats + 1):
        with tempfile.TemporaryDirectory() as out:
            command = _command(folder, Path(out))
            start, before = time.perf_counter(), os.times()
            subprocess.run(command, check=True, capture_output=True)
            times.append(time.perf_counter() - start)
            after = os.times()
            used = after.children_user + after.children_system
            processor.append(used - before.children_user - before.children_system)
    return {
        "value": statistics.median(times),
        "detail": f"median of {len(times)}, {min(times):.2f} to {max(times):.2f} s; "
        f"{statistics.median(processor):.2f} s of the processor",
    }


def _command(folder: Path, out: Path, *arguments: str) -> list[str]:
    (out / "params.yaml").write_text("score: {}\n")
    places = {"scores": "scores", "metrics": "metrics.json", "plots": "plots", "cache": "cache"}
    options = [f"--{option}={out / name}" for option, name in places.items()]
    options += [f"--predictions={folder}", f"--params={out / 'params.yaml'}"]
    return [sys.executable, "-m", "stages.main", "score", *options, *arguments]


def _watch(process: psutil.Process, peaks: dict[int, int]) -> None:
    """Raise the peak of the process and of each of its children."""
    try:
        for each in (process, *process.children(recursive=True)):
            peaks[each.pid] = max(peaks.get(each.pid, 0), each.memory_info().rss)
    except psutil.NoSuchProcess:
        return
