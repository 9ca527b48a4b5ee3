"""examples/ray_shards.py under a Ray that is started here and ends here."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.config import load_section
from pipeline.predict.config import PredictConfig
from pipeline.predict.run import predict
from pipeline.store.chunk import chunk_index
from tests.examples import write_examples
from tests.models import TEXTS
from tests.predict.fake import Silent
from tests.project import ROOT

PARAMS = """
predict:
  template: "{document}"
  device: cpu
  chunk_rows: 2
  max_batch_rows: 2
  generation: {max_new_tokens: 60}
"""


@pytest.fixture
def place(tmp_path: Path, gpt2: Path) -> Path:
    (tmp_path / "params.yaml").write_text(PARAMS)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/model").symlink_to(gpt2)
    write_examples(tmp_path / "data/examples.parquet", [f"{n} {TEXTS[n % 2]}" for n in range(80)])
    return tmp_path


@pytest.fixture
def folder_of_ray() -> Iterator[Path]:
    """A short path, since Ray's sockets lie in it."""
    folder = Path(tempfile.mkdtemp(prefix="ray"))
    yield folder
    shutil.rmtree(folder)


def ray_shards(place: Path, folder: Path) -> subprocess.Popen[str]:
    """The example, whose tasks are at work or which has ended for a reason of its own.

    Ray gives its own processes some seconds to start, and gives up on a machine that is busy: then
    it is started again.
    """
    env = os.environ | {
        "RAY_TMPDIR": str(folder),
        "HOME": str(folder),  # where Ray keeps a token
        "PYTHONPATH": str(ROOT),
        "RAY_raylet_start_wait_time_s": "60",
    }
    command = [
        *(sys.executable, str(ROOT / "examples/ray_shards.py"), "--address", "local"),
        *("--shards", "2", "--num-gpus", "0", "--num-cpus", "0.1"),
    ]
    log = folder / "stderr"
    for _ in range(5):
        with log.open("w") as stderr:
            driver = subprocess.Popen(
                command, cwd=place, env=env, text=True, stdout=subprocess.PIPE, stderr=stderr
            )
        while driver.poll() is None and not at_work(place):
            time.sleep(0.02)
        if driver.poll() is None or "timed out during startup" not in log.read_text():
            return driver
        driver.communicate()
        wait_for(lambda: not processes(folder), seconds=30)
    raise AssertionError("Ray does not start")


def at_work(place: Path) -> bool:
    """Whether both shards have made a chunk: one has the even, the other the odd ones."""
    chunks = {chunk_index(path.name) for path in place.glob("data/.partial/*/chunk-*")} - {None}
    return {chunk % 2 for chunk in chunks if chunk is not None} == {0, 1}


def processes(folder: Path) -> dict[int, str]:
    """Processes that write into Ray's folder, and their command lines."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            files = [os.readlink(descriptor) for descriptor in (process / "fd").iterdir()]
            if any(file.startswith(f"{folder}/") for file in files):
                found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found


def wait_for(condition: Callable[[], bool], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_tasks_that_are_killed_are_retried_and_the_set_is_that_of_one_process(
    place: Path, folder_of_ray: Path
) -> None:
    driver = ray_shards(place, folder_of_ray)
    try:
        for process, line in processes(folder_of_ray).items():
            if "make_shard" in line:
                os.kill(process, signal.SIGKILL)
        stdout, _ = driver.communicate(timeout=300)
    finally:
        driver.kill()
    assert driver.returncode == 0, (folder_of_ray / "stderr").read_text()
    done = {shard: (int(made), int(kept)) for shard, made, kept in re.findall(
        r"^shard (\d)/2: (\d+) made, (\d+) kept$", stdout, flags=re.MULTILINE
    )}  # fmt: skip
    assert {made + kept for made, kept in done.values()} == {20}
    assert any(kept > 0 for _, kept in done.values())  # it took two tries
    assert "data/predictions: 80 rows in 40 chunks, run " in stdout
    predict(
        load_section(place / "params.yaml", "predict", PredictConfig),
        model=place / "data/model",
        examples=place / "data/examples.parquet",
        predictions=place / "alone/predictions",
        telemetry=place / "alone/telemetry.csv",
        progress=Silent(),
    )
    assert files_of(place / "data/predictions") == files_of(place / "alone/predictions")
    wait_for(lambda: not processes(folder_of_ray), seconds=30)

    # What a person has done wrong is one line, and nothing is tried again.
    (place / "params.yaml").write_text(PARAMS.replace("{document}", "{text}"))
    shutil.rmtree(place / "data/.partial")
    shutil.rmtree(place / "data/predictions")
    failed = ray_shards(place, folder_of_ray)
    failed.communicate(timeout=300)
    stderr = (folder_of_ray / "stderr").read_text()
    assert failed.returncode == 1
    (line,) = (line for line in stderr.splitlines() if line.startswith("Error: "))
    assert "{text}" in line
    assert "Traceback" not in stderr
    wait_for(lambda: not processes(folder_of_ray), seconds=30)
