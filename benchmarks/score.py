"""Phase two against its bounds: the same rows, the same metrics, one run.

Each check runs in a process of its own, on one core where it says so; what is compared is timed in
turns, and the ratio is that of the medians. ``--quick`` is a smoke test on sizes that say nothing
about speed. Exits with 1 when a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import machine
from benchmarks.corpus import Corpus


class Sizes(NamedTuple):
    """Rows per check, and how often each side is timed."""

    sentences: int = 20_000
    documents: int = 2_000
    parallel: int = 200_000
    memory: int = 1_000_000
    interval: int = 100_000
    start: int = 352
    repeats: int = 3


QUICK = Sizes(60, 20, 400, 1000, 3000, 352, 1)


class Check(NamedTuple):
    """One bound.

    Attributes:
        name: of the function in ``benchmarks.checks``.
        rows: field of ``Sizes``.
        words: per row.
        title: what is printed.
        bound: the least or the most.
        unit: ``x`` is a ratio and has a least value; others have a most.
        one_core: whether the process is held to one core.
    """

    name: str
    rows: str
    words: int
    title: str
    bound: float
    unit: str
    one_core: bool = True


CHECKS = (
    Check("against_libraries", "sentences", 20, "ROUGE + BLEU, 20-word sentences", 10, "x"),
    Check("against_libraries", "documents", 150, "ROUGE + BLEU, 150-word documents", 30, "x"),
    Check("chrf", "sentences", 20, "chrF++ against sacreBLEU", 8, "x"),
    Check("two_workers", "parallel", 20, "n_jobs=2 against n_jobs=1", 1.7, "x", False),
    Check("peak_memory", "memory", 20, "peak RSS of any process", 1.0, "GB", False),
    Check("command_line", "start", 20, "from the shell to metrics.json", 1.0, "s", False),
    Check("bootstrap", "interval", 20, "1,000 replicates", 5.0, "s"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test; holds no bound")
    parser.add_argument("--only", choices=sorted({check.name for check in CHECKS}))
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else Sizes()
    print(machine.describe(), flush=True)
    if machine.busy():
        print(machine.busy(), file=sys.stderr)
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        sets = Path(folder)
        corpus = Corpus("json" if arguments.quick else None)
        for check in CHECKS:
            if arguments.only in (None, check.name):
                rows = getattr(sizes, check.rows)
                found = _measure(check, _write_set(corpus, sets, rows, check.words), sizes.repeats)
                missed += _report(check, rows, found, arguments.quick)
    print(machine.describe().splitlines()[0], flush=True)
    return int(missed > 0 and not arguments.quick)


def _write_set(corpus: Corpus, sets: Path, rows: int, words: int) -> Path:
    folder = sets / f"{rows}-{words}"
    return folder if folder.exists() else corpus.write_set(folder, rows, words)


def _measure(check: Check, folder: Path, repeats: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.checks", check.name, str(folder), str(repeats)]
    done = subprocess.run(
        command + ["--one-core"] * check.one_core,
        env={**os.environ, **machine.ONE_THREAD},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _report(check: Check, rows: int, found: dict[str, Any], quick: bool) -> int:
    """Print a line; 1 when the bound is missed."""
    if found["value"] is None:
        print(f"{check.title}: not measured, {found['detail']}", flush=True)
        return 0
    value = found["value"]
    held = value >= check.bound if check.unit == "x" else value < check.bound
    sign = "≥" if check.unit == "x" else "<"
    verdict = "not judged" if quick else "ok" if held else "MISSED"
    print(
        f"{check.title}, {rows:,} rows: {value:.2f} {check.unit} "
        f"(bound {sign} {check.bound:g} {check.unit}): {verdict}; {found['detail']}",
        flush=True,
    )
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
