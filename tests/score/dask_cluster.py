"""A Dask scheduler and workers, as processes of their own on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.project import ROOT

_START_S = 120
_REGISTERED = "Registered to:"


class Cluster:
    """Attributes: ``address`` of the scheduler, the processes ``scheduler`` and ``workers``."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start(
            "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", str(self._file), environment=environment,
        )  # fmt: skip
        deadline = time.monotonic() + _START_S
        while not self._file.exists() or not self._file.read_text().endswith("}"):
            assert self.scheduler.poll() is None, (folder / "dask_scheduler.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self.address: str = json.loads(self._file.read_text())["address"]

    def add_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker, which stays dead when it is killed, and return when it is registered."""
        log = self._folder / "dask_worker.log"
        before = log.read_text().count(_REGISTERED) if log.exists() else 0
        worker = self._start(
            "dask_worker", "--host", "127.0.0.1", "--scheduler-file", str(self._file),
            "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--local-directory", str(self._folder), environment=environment,
        )  # fmt: skip
        self.workers.append(worker)
        deadline = time.monotonic() + _START_S
        while log.read_text().count(_REGISTERED) == before:
            assert worker.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return worker

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(
        self, module: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
        with (self._folder / f"{module}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
                # Not the project's folder: a worker has a working directory of its own.
                cwd=self._folder, env=env, stdout=log, stderr=log,
            )  # fmt: skip


@contextmanager
def cluster(folder: Path, workers: int = 2, **environment: str) -> Iterator[Cluster]:
    """A cluster that is gone at the end of the block; ``environment`` is the scheduler's."""
    folder.mkdir(parents=True, exist_ok=True)
    started = Cluster(folder, **environment)
    try:
        for _ in range(workers):
            started.add_worker()
        yield started
    finally:
        started.close()
