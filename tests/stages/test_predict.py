"""`twophase predict` as a process: kills, signals, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.store.prediction_set import PredictionSet
from tests.examples import write_examples
from tests.models import TEXTS

PARAMS = """
predict:
  template: "{document}"
  device: cpu
  chunk_rows: 4
  max_batch_rows: 2
  generation: {max_new_tokens: 24}
"""
ROWS = [f"{row} {TEXTS[row % 2]}" for row in range(40)]


@pytest.fixture
def place(tmp_path: Path, gpt2: Path) -> Path:
    (tmp_path / "params.yaml").write_text(PARAMS)
    (tmp_path / "model").symlink_to(gpt2)
    write_examples(tmp_path / "examples.parquet", ROWS)
    return tmp_path


def command(out: str, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "stages.predict", "--model", "model"),
        *("--examples", "examples.parquet", "--predictions", f"{out}/predictions"),
        *("--telemetry", f"{out}/telemetry.csv", *more),
    ]


def finish(place: Path, out: str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(out, *more), cwd=place, capture_output=True, text=True)


def chunks_on_disk(place: Path, out: str) -> list[Path]:
    return list((place / out).glob(".partial/*/chunk-*.parquet"))


def stop_after_chunks(place: Path, out: str, chunks: int, number: int) -> tuple[int, str]:
    """Signal the process once it has written ``chunks``; its exit code and stderr."""
    with (place / "stderr").open("w+") as stderr:
        process = subprocess.Popen(command(out), cwd=place, stderr=stderr)
        deadline = time.monotonic() + 120
        while len(chunks_on_disk(place, out)) < chunks:
            assert process.poll() is None, (place / "stderr").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.send_signal(number)
        return process.wait(timeout=60), (place / "stderr").read_text()


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_killed_after_its_second_chunk_and_resumed(place: Path) -> None:
    code, _ = stop_after_chunks(place, "killed", 2, signal.SIGKILL)
    assert code == -signal.SIGKILL
    kept = {path.name: path.stat().st_mtime_ns for path in chunks_on_disk(place, "killed")}
    assert 2 <= len(kept) < 10
    assert not (place / "killed/predictions").exists()

    resumed = finish(place, "killed")
    assert resumed.returncode == 0, resumed.stderr
    assert f"({10 - len(kept)} made, {len(kept)} kept)" in resumed.stdout
    for path in chunks_on_disk(place, "killed"):
        assert kept.get(path.name, path.stat().st_mtime_ns) == path.stat().st_mtime_ns

    assert finish(place, "whole").returncode == 0
    killed, whole = place / "killed/predictions", place / "whole/predictions"
    for chunk in range(10):  # the tables …
        ours, theirs = (PredictionSet(folder).reader(chunk).read() for folder in (killed, whole))
        assert ours.equals(theirs)
    assert files_of(killed) == files_of(whole)  # … and the bytes


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_keep_chunks_and_have_their_exit_codes(
    place: Path, number: signal.Signals, code: int
) -> None:
    stopped, stderr = stop_after_chunks(place, "out", 1, number)
    assert stopped == code, stderr
    assert "Traceback" not in stderr
    kept = len(chunks_on_disk(place, "out"))
    assert f"{kept} kept" in finish(place, "out").stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-S", "predict.chunk_row=3"], "unknown key 'predict.chunk_row' (did you mean chunk_rows"),
        (["-S", "predict.template='{documnt}'"], "did you mean document"),
        (["-S", "predict.generation.max_new_tokens=null"], "max_new_tokens must be"),
        (["-S", "score.seed=1"], "this command reads the section 'predict' only"),
        (
            ["--examples", "nowhere.parquet"],
            "nowhere.parquet: no such file; run `twophase prepare`",
        ),
        (["--params", "nowhere.yaml"], "nowhere.yaml: no such params file"),
    ],
)
def test_expected_errors_are_one_line(place: Path, more: list[str], message: str) -> None:
    failed = finish(place, "out", *more)
    assert failed.returncode == 1
    assert failed.stderr.startswith("Error: ")
    assert message in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
    assert not (place / "out/predictions").exists()


def test_usage_errors_exit_with_2(place: Path) -> None:
    assert finish(place, "out", "--no-such-option").returncode == 2


def test_without_its_extra_the_stage_says_what_to_type(place: Path, tmp_path: Path) -> None:
    hide = tmp_path / "hide"
    hide.mkdir()
    (hide / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'torch' else real(name, *a)\n"
    )
    root = Path(__file__).parents[2]
    env = os.environ | {"PYTHONPATH": f"{hide}{os.pathsep}{root}"}
    failed = subprocess.run(command("out"), cwd=place, capture_output=True, text=True, env=env)
    assert failed.returncode == 1
    assert "predict needs the install extra [predict] (torch not installed)" in failed.stderr
    assert "dvc repro --pull --allow-missing score" in failed.stderr
