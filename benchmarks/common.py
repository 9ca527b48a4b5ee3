"""What the benchmarks share: the machine, verdicts, models and data made on the spot."""

from __future__ import annotations

import os
import platform
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from pipeline.predict.config import PredictConfig


@dataclass(frozen=True)
class Check:
    """A measured number and its bound."""

    name: str
    value: str
    bound: str
    passed: bool | None  # None where it was not run, or only for a smoke test

    def line(self) -> str:
        """A row of the table."""
        verdict = {True: "ok", False: "MISSED", None: "not judged"}[self.passed]
        return f"{self.name:<52} {self.value:>20}  {self.bound:<14} {verdict}"


def report(checks: Sequence[Check]) -> int:
    """Print the table; the exit code is 1 where a bound was missed."""
    print("\n".join(check.line() for check in checks), flush=True)
    return int(any(check.passed is False for check in checks))


def at_least(name: str, ratios: Sequence[float], bound: float, *, judged: bool) -> Check:
    """The median of ``ratios`` must be at least ``bound``."""
    middle = statistics.median(ratios)
    shown = f"{middle:.2f}x ({min(ratios):.2f}-{max(ratios):.2f})"
    return Check(name, shown, f">= {bound}x", middle >= bound if judged else None)


def machine() -> str:
    """One line: what the numbers belong to."""
    memory = psutil.virtual_memory().total / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    text = f"{platform.machine()}, {cores} cores, {memory:.0f} GiB RAM, Python "
    text += f"{platform.python_version()}"
    import torch
    import transformers

    text += f", torch {torch.__version__}, transformers {transformers.__version__}"
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        text += f", {properties.name} ({properties.total_memory / 2**30:.0f} GiB)"
    return text


def has_setting(name: str) -> bool:
    """Whether this version's ``predict`` section has the key ``name``."""
    return name in PredictConfig.__struct_fields__


# Started from here, a command would begin with the peak of this process as its own: the kernel
# carries it over (fork and exec are one step). Between them stands a process that is small.
_LAUNCHER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(usage.ru_maxrss)
sys.exit(process.returncode)
"""


def peak_rss_bytes(command: Sequence[str], cwd: Path) -> int:
    """Peak resident memory of ``command``, which must succeed."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", _LAUNCHER, *command],
        cwd=cwd, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{' '.join(command[:4])} … failed: {said[-1]}")
    return int(done.stdout) * (1 if sys.platform == "darwin" else 1024)


def predict_command(place: Path, settings: Mapping[str, Any]) -> list[str]:
    """``twophase predict`` over ``place/examples.parquet`` with ``place/model``."""
    (place / "params.yaml").write_text("{}\n")
    command = [
        *(sys.executable, "-m", "stages.predict", "--params", "params.yaml"),
        *("--model", "./model", "--examples", "examples.parquet"),
        *("--predictions", "out/predictions", "--telemetry", "out/telemetry.csv"),
    ]
    for key, value in settings.items():
        command += ["-S", f"predict.{key}={value}"]
    return command


def words(count: int, generator: random.Random) -> str:
    """A text of ``count`` words."""
    known = (
        "the",
        "a",
        "of",
        "to",
        "in",
        "is",
        "that",
        "for",
        "it",
        "as",
        "was",
        "with",
        "on",
        "by",
    )
    return " ".join(generator.choice(known) for _ in range(count))


@contextmanager
def memory_picture(path: Path, size: tuple[float, float]) -> Iterator[Any]:
    """Yield axes for peak memory in GB over rows; they are saved as an SVG at ``path``."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "twophase"  # the same numbers are the same bytes
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=size, layout="constrained")
    yield axes
    axes.set_ylabel("peak resident memory [GB]")
    axes.set_ylim(bottom=0)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
