"""Scoring on a Dask cluster: a real scheduler, real workers, and what becomes of their deaths."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ClusterError, ConfigError, DamagedChunkError
from pipeline.score import cluster as cluster_module
from pipeline.score import run as run_module
from pipeline.score.config import ScoreConfig
from pipeline.score.run import score
from pipeline.store.chunk import chunk_name
from tests.project import ROOT
from tests.score.dask_cluster import Cluster, cluster
from tests.score.sets import PREDICTIONS, REFERENCES, write_set

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("dask")) as started:
        yield started


@pytest.fixture(autouse=True)
def a_chunk_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "CALL_ROWS", 1)


def run(folder: Path, out: str, scheduler: str | None = None, **how: Any) -> dict[str, bytes]:
    """Score; the bytes of all that was written."""
    target = folder.parent / out
    metrics = how.pop("metrics", ("rouge", "bleu"))
    config = ScoreConfig(
        metrics=metrics, replicates=20, by=("topic",),
        backend="loky" if scheduler is None else "dask", scheduler=scheduler,
    )  # fmt: skip
    score(folder, target / "scores", target / "metrics.json", config, **how)
    files = [target / "metrics.json", *(target / "scores").iterdir()]
    return {path.name: path.read_bytes() for path in files}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_set(
        tmp_path / "set", PREDICTIONS * 4, REFERENCES * 4, keep={"topic": ["a", "b"] * 10},
        ids=[f"id-{row}" for row in range(20)],
    )  # fmt: skip
    return tmp_path / "set"


def test_the_bytes_are_those_of_one_process_and_the_cache_is_filled_here(
    dask: Cluster, folder: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    slow = {"custom": {"metric": "tests.score.slow_metric:Slow", "options": {"log": str(log)}}}
    how = {"metrics": ("rouge", "bleu", slow)}
    expected = run(folder, "here", **how)
    assert log.read_text().split()[::2].count(str(os.getpid())) == 10
    seen: list[int] = []
    ours = run(folder, "there", dask.address, cache=tmp_path / "cache", progress=seen.append, **how)
    assert ours == expected
    assert sum(seen) == 20
    workers = {str(worker.pid) for worker in dask.workers}
    assert set(log.read_text().split()[20::2]) <= workers
    # What is known is read here, and computed nowhere.
    lines = log.read_text()
    assert run(folder, "again", dask.address, cache=tmp_path / "cache", **how) == expected
    assert run(folder, "local", cache=tmp_path / "cache", **how) == expected
    assert log.read_text() == lines


def test_the_set_may_be_at_a_url(s3: str, folder: Path, tmp_path: Path) -> None:
    from pipeline.store.upload import UrlTarget
    from pipeline.store.url import Url

    UrlTarget(Url.parse(f"{s3}/run")).upload(folder)
    expected = run(folder, "here")
    with cluster(tmp_path / "dask", workers=1) as dask:  # with the credentials of this process
        target = tmp_path / "there"
        config = ScoreConfig(replicates=20, by=("topic",), backend="dask", scheduler=dask.address)
        score(f"{s3}/run", target / "scores", target / "metrics.json", config)
    files = [target / "metrics.json", *(target / "scores").iterdir()]
    assert {path.name: path.read_bytes() for path in files} == expected


def test_a_worker_that_is_killed_changes_nothing(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = {"log": str(log), "seconds": 0.3}
    slow = {"custom": {"metric": "tests.score.slow_metric:Slow", "options": options}}
    how = {"metrics": ("bleu", slow)}
    expected = run(folder, "here", **how)
    log.unlink()
    with cluster(tmp_path / "dask") as dask:
        killed = kill_when(lambda: dask.workers[0] if log.exists() else None)
        assert run(folder, "there", dask.address, **how) == expected
        killed.join()
        assert dask.workers[0].wait(timeout=60) == -signal.SIGKILL
        lines = log.read_text().split()[::2]
        # The other made what was left, and what the dead one had not sent.
        assert lines.count(str(dask.workers[1].pid)) >= 5


def test_a_scheduler_that_dies_is_an_error_and_the_old_scores_stay(
    folder: Path, tmp_path: Path
) -> None:
    before = run(folder, "out")
    log = tmp_path / "log"
    options = {"log": str(log), "seconds": 0.5}
    slow = {"custom": {"metric": "tests.score.slow_metric:Slow", "options": options}}
    with cluster(tmp_path / "dask") as dask:
        killed = kill_when(lambda: dask.scheduler if log.exists() else None)
        with pytest.raises(ClusterError, match=r"the cluster of tcp://.* failed: .* untouched"):
            run(folder, "out", dask.address, metrics=("bleu", slow))
        killed.join()
    files = [tmp_path / "out/metrics.json", *(tmp_path / "out/scores").iterdir()]
    assert {path.name: path.read_bytes() for path in files} == before


def kill_when(find: Callable[[], subprocess.Popen[bytes] | None]) -> threading.Thread:
    """SIGKILL the process that ``find`` gives, as soon as it gives one."""

    def watch() -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            process = find()
            if process is not None:
                process.kill()
                return
            time.sleep(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "nosuch://127.0.0.1:1"])
def test_no_scheduler_there(folder: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "CONNECT_S", 1)
    with pytest.raises(ClusterError, match=rf"the scheduler {address} .*cannot be reached: .*dask"):
        run(folder, "out", address)


def test_no_scheduler_named(folder: Path) -> None:
    config = ScoreConfig(backend="dask")
    with pytest.raises(ConfigError, match=r"dask needs score.scheduler"):
        score(folder, folder / "scores", folder / "metrics.json", config)


def test_no_workers(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "CONNECT_S", 3)
    with (
        cluster(tmp_path / "dask", workers=0) as dask,
        pytest.raises(ClusterError, match="no worker after 3 seconds"),
    ):
        run(folder, "out", dask.address)


def test_damage_is_named_as_everywhere(dask: Cluster, folder: Path) -> None:
    for chunk in (3, 5):
        (folder / chunk_name(chunk)).write_bytes(b"no parquet")
    with pytest.raises(
        DamagedChunkError, match=r"chunk-00003.parquet is damaged.*fault in chunk-00005.parquet"
    ):
        run(folder, "out", dask.address)


def test_a_worker_that_does_not_see_the_set(
    dask: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        cluster_module, "_as_workers_see", lambda place: type(place)(Path("/nowhere"))
    )
    with pytest.raises(ClusterError, match=r"worker tcp://.* does not see /nowhere: .*URL"):
        run(folder, "out", dask.address)


def test_a_worker_with_other_code(
    dask: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = cluster_module.environment
    monkeypatch.setattr(
        cluster_module, "environment", lambda metrics: {**ours(metrics), "sacrebleu": "0.1"}
    )
    with pytest.raises(ClusterError, match=r"has other code.*\(sacrebleu 2.*, not 0.1\)"):
        run(folder, "out", dask.address)


def test_a_worker_without_the_package(folder: Path, tmp_path: Path) -> None:
    hide = tmp_path / "hide"
    hide.mkdir()
    (hide / "sitecustomize.py").write_text("import sys\nsys.modules['pipeline'] = None\n")
    with cluster(tmp_path / "dask", workers=0) as dask:
        dask.add_worker(PYTHONPATH=str(hide))
        with pytest.raises(ClusterError, match=r"twophase is not installed .*\(tcp://127.0.0.1:"):
            run(folder, "out", dask.address)


def test_a_metric_of_ones_own_must_be_there_too(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine_alone.py").write_text(
        "from tests.score.slow_metric import Slow\n\n\nclass Mine(Slow):\n    pass\n"
    )
    mine = {"custom": {"metric": "mine_alone:Mine", "options": {"log": str(tmp_path / "log")}}}
    path = os.pathsep.join([str(ROOT), str(own)])
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(own))
        expected = run(folder, "here", metrics=(mine,))
        with cluster(tmp_path / "bare", workers=1) as dask:
            lacks = (
                r"module mine_alone of score.metrics .*\(tcp://[^,]*, the scheduler\).*PYTHONPATH"
            )
            with pytest.raises(ClusterError, match=lacks):
                run(folder, "out", dask.address, metrics=(mine,))
        with cluster(tmp_path / "dask", workers=0, PYTHONPATH=path) as dask:
            dask.add_worker(PYTHONPATH=path)
            assert run(folder, "there", dask.address, metrics=(mine,)) == expected


def test_chunks_that_kill_their_workers_are_an_error_and_no_waiting(
    folder: Path, tmp_path: Path
) -> None:
    options = {"log": str(tmp_path / "log"), "deadly": True}
    deadly = {"custom": {"metric": "tests.score.slow_metric:Slow", "options": options}}
    patience = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with (
        cluster(tmp_path / "dask", workers=2, **patience) as dask,
        pytest.raises(ClusterError, match="failed: KilledWorker"),
    ):
        run(folder, "out", dask.address, metrics=(deadly,))


def test_ctrl_c_stops_the_command(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = f"{{log: {log}, seconds: 5.0}}"
    with cluster(tmp_path / "dask") as dask:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "stages.score", "--predictions", "set"),
                *("-S", "score.backend=dask", "-S", f"score.scheduler={dask.address}"),
                *("-S", "score.metrics=[{custom: {metric: tests.score.slow_metric:Slow, "
                  f"options: {options}}}}}]"),
            ],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        deadline = time.monotonic() + 120
        while not log.exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 130, stderr
        assert "Traceback" not in stderr
        assert stderr.strip().splitlines()[-1].startswith("stopped by Ctrl-C")
    assert not (tmp_path / "metrics.json").exists()
