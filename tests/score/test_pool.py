from __future__ import annotations

import os
import signal
import sys
from functools import partial

import pytest

from pipeline.config import parse_section
from pipeline.errors import ConfigError, DamagedChunkError, ScoresError
from pipeline.score.config import ScoreConfig
from pipeline.score.pool import run_calls


def _work(number: int) -> tuple[int, int, str | None]:
    return number, os.getpid(), os.environ.get("RAYON_NUM_THREADS")


def _die() -> None:
    os._exit(1)


def _fail() -> None:
    raise DamagedChunkError("chunk-00007.parquet is damaged")


def test_one_job_is_this_process() -> None:
    results = list(run_calls([partial(_work, number) for number in range(3)], 1, "loky"))
    assert [(number, pid) for number, pid, _ in results] == [(n, os.getpid()) for n in range(3)]


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_every_backend_gives_every_result(backend: str) -> None:
    results = list(run_calls([partial(_work, number) for number in range(40)], 2, backend))
    assert sorted(number for number, _, _ in results) == list(range(40))
    elsewhere = {threads for _, pid, threads in results if pid != os.getpid()}
    assert elsewhere == (set() if backend == "threading" else {"1"})
    assert "RAYON_NUM_THREADS" not in os.environ or backend != "threading"


def _is_quiet() -> tuple[bool, bool]:
    return sys.stdout is sys.stderr, signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_worker_prints_nothing_among_the_results_nor_a_traceback_at_ctrl_c() -> None:
    assert list(run_calls([_is_quiet] * 2, 2, "loky")) == [(True, True)] * 2


def test_an_error_arrives_as_it_was_raised() -> None:
    with pytest.raises(DamagedChunkError, match=r"^chunk-00007.parquet is damaged$"):
        list(run_calls([_fail], 2, "loky"))


def test_a_killed_worker_is_an_expected_error() -> None:
    with pytest.raises(ScoresError, match=r"a worker process was killed .* score.n_jobs \(2\)"):
        list(run_calls([_die], 2, "loky"))


def test_no_workers() -> None:
    with pytest.raises(ConfigError, match="score.n_jobs: expected 1 or more workers"):
        list(run_calls([_fail], 0, "loky"))


def test_a_backend_that_would_hang_is_refused_whatever_the_size_of_the_set() -> None:
    with pytest.raises(
        ConfigError, match=r"score.backend: expected dask, loky, threading, got 'multip"
    ):
        parse_section({"backend": "multiprocessing"}, "score", ScoreConfig)
