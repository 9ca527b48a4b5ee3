"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import psutil

LIBRARIES = ("numpy", "pyarrow", "tokenizers", "rouge-score-rs", "rouge-score", "sacrebleu")
# One core means one: the libraries would take threads of their own.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
}


def describe() -> str:
    """Processor, cores, memory, load, Python and libraries, in two lines."""
    memory = psutil.virtual_memory().total / 2**30
    load = " ".join(f"{value:.1f}" for value in psutil.getloadavg())
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{_processor()}, {cores()} cores, {memory:.0f} GiB; load {load}\n"
        f"Python {platform.python_version()}, {libraries}"
    )


def busy() -> str:
    """A warning where other processes take part of the cores; empty on an idle machine."""
    load = psutil.getloadavg()[0]
    if load < 0.5:
        return ""
    return f"the machine is busy (load {load:.1f}): two workers and the command line look slower"


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
