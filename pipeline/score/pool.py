"""Where chunks are scored: in this process, or in joblib's workers.

Workers take about a second to start, in which one core scores some 30,000 sentences; a set that is
smaller than that gains nothing from them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stdout
from typing import TypeVar

from pipeline.errors import ConfigError, ScoresError

Result = TypeVar("Result")

# Below this many rows, chunks are scored in this process whatever n_jobs says.
WORKER_ROWS = 50_000
# One core per worker: the libraries under it would each take all of them.
_ONE_THREAD = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def run_calls(calls: Sequence[Callable[[], Result]], n_jobs: int, backend: str) -> Iterator[Result]:
    """Results of ``calls``, in any order.

    Args:
        calls: to be called without arguments; they and their results pickle.
        n_jobs: workers, as joblib counts them; 1 is this process.
        backend: joblib's name of where the workers run; one that streams results.

    Raises:
        ConfigError: no such number of workers.
        ScoresError: a worker was killed.
    """
    if n_jobs == 0:
        raise ConfigError("score.n_jobs: expected 1 or more workers, or -1 for one per core, got 0")
    if n_jobs == 1:
        for call in calls:
            yield call()
        return
    try:
        yield from _run_in_workers(calls, n_jobs, backend)
    except BrokenProcessPool as error:
        raise ScoresError(
            "a worker process was killed while it scored (out of memory?); the scores that were "
            f"there are untouched: lower score.n_jobs ({n_jobs}) and score again"
        ) from error


def _run_in_workers(
    calls: Sequence[Callable[[], Result]], n_jobs: int, backend: str
) -> Iterator[Result]:
    import joblib

    tasks = [joblib.delayed(_call)(call, os.getpid()) for call in calls]
    parallel = joblib.Parallel(n_jobs, backend=backend, return_as="generator_unordered")
    yield from parallel(tasks)


def _call(call: Callable[[], Result], parent: int) -> Result:
    if os.getpid() == parent:
        return call()
    os.environ.update(_ONE_THREAD)
    # Ctrl-C reaches all processes of a terminal; the parent says so, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with redirect_stdout(sys.stderr):  # stdout is for the results
        return call()
