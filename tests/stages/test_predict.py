"""`twophase predict` as a process: kills, signals, exit codes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipeline.predict.fingerprint import model_content
from pipeline.store.prediction_set import PredictionSet
from stages.predict import command as predict_command
from tests.models import save_gpt2
from tests.predict.place import make_place


@pytest.fixture
def place(tmp_path: Path, gpt2: Path) -> Path:
    return make_place(tmp_path, gpt2)


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
    kept = len(chunks_on_disk(place, "out"))
    by = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "Ctrl-C"}[number]
    assert stderr.splitlines()[-1] == (
        f"stopped by {by}; run the same command again: {kept} of 10 chunks are done"
    )
    assert "Traceback" not in stderr
    # No terminal: a line per chunk, and no bar.
    lines = [line for line in stderr.splitlines() if line.startswith("chunk-")]
    assert len(lines) == kept
    assert re.fullmatch(
        r"chunk-00000.parquet: 4 rows in [\d.]+ s, [\d.]+ examples/s, [\d.]+ tokens/s, "
        r"peak [\d.]+ GiB; 4 of 40 rows, \d\d:\d\d left",
        lines[0],
    )
    assert "\r" not in stderr
    assert f"{kept} kept" in finish(place, "out").stdout


def test_a_signal_stops_after_the_token_being_generated(place: Path) -> None:
    (place / "model").unlink()
    save_gpt2(place / "model", window=8192)
    process = subprocess.Popen(
        command("out", "-S", "predict.generation={max_new_tokens: 8000, min_new_tokens: 8000}"),
        cwd=place, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not list(place.glob("out/.partial/*/run.json")):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(1)  # it is at the first of batches that take half a minute each
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    # Not at the end of its batch, which would have made a chunk.
    assert process.returncode == 143
    assert "stopped by SIGTERM; run the same command again: 0 of 10 chunks are done" in stderr


def test_in_a_terminal_there_is_a_bar(place: Path) -> None:
    """With time left, examples/s, tokens/s and memory; finished chunks count as done."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 120, 0, 0))
    process = subprocess.Popen(command("out"), cwd=place, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    drawn = b""
    while part := read_terminal(ours):
        drawn += part
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert process.stdout is not None
    process.stdout.close()
    last = drawn.decode().replace("\n", "\r").rstrip("\r ").split("\r")[-1]
    assert re.search(r"predict: +100%.* 40/40 \[\d\d:\d\d<\d\d:\d\d, .*ex/s", last), last
    assert re.search(r"[\d.]+ tokens/s, [\d.]+ GiB\]", last), last
    assert "chunk-00000" not in drawn.decode()


def read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end was closed
        return b""


def in_process(place: Path, out: str, *more: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.chdir(place)
    return CliRunner().invoke(predict_command, command(out, *more)[3:])


def test_the_plan(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_process(place, "out", "--shard", "1/2", monkeypatch=monkeypatch)
    before = files_of(place / "out")
    planned = in_process(place, "out", "--dry-run", monkeypatch=monkeypatch)
    assert planned.exit_code == 0, planned.output
    lines = planned.stdout.splitlines()
    assert lines[:4] == [
        "rows              40 (0 to 39)",
        "chunks            10, of 4 rows",
        "missing           5 (chunk-00001.parquet, chunk-00003.parquet, chunk-00005.parquet, "
        "chunk-00007.parquet, chunk-00009.parquet)",
        "batch budget      2 rows, 8192 tokens (padded prompts plus new tokens)",
    ]
    assert re.fullmatch(
        r"estimated tokens  about \d+ of prompts \(20 rows counted, chat template and the model's "
        r"window aside\) \+ at most 480 new ones \(24 per row\)",
        lines[4],
    )
    (store,) = (place / "out/.partial").iterdir()
    assert f"fingerprint       {store.name}" in lines
    assert "  predict.generation.max_new_tokens: 24" in lines
    assert f"  model: {model_content(place / 'model')}" in lines
    assert files_of(place / "out") == before
    assert planned.stderr == ""


def test_shards_say_what_is_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = in_process(place, "out", "--shard", "2/2", monkeypatch=monkeypatch)
    assert first.stdout == (
        "shard 2/2: done (5 made, 0 kept), 5 of 10 chunks are there; the shard that finds all of "
        "them publishes out/predictions; without a shared folder, merge the parts\n"
    )
    last = in_process(place, "out", "--shard", "1/2", monkeypatch=monkeypatch)
    assert "out/predictions: 40 rows in 10 chunks (5 made, 0 kept), run " in last.stdout
    wrong = in_process(place, "out", "--shard", "0/2", monkeypatch=monkeypatch)
    assert (wrong.exit_code, wrong.stdout) == (1, "")
    assert wrong.stderr.startswith("Error: --shard 0/2: shards are numbered 1 to 2")


def test_the_share_of_cut_prompts_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ["-S", "predict.max_prompt_tokens=10", "-S", "predict.rows=':8'"]
    said = in_process(place, "out", *keys, monkeypatch=monkeypatch).stdout
    assert "8 rows in 2 chunks (2 made, 0 kept)" in said
    assert said.endswith("8 prompts (100.0%) had a field cut to fit\n")


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
