"""Ranks: real ones under torchrun, on the CPU, and what they say to each other."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.config import load_section
from pipeline.errors import ConfigError, RankError
from pipeline.predict import ranks as ranks_module
from pipeline.predict import together
from pipeline.predict.config import PredictConfig
from pipeline.predict.ranks import Ranks
from pipeline.predict.run import predict
from pipeline.predict.shard import Shard
from pipeline.store.merge import merge
from pipeline.store.work import WorkStore
from tests.predict.fake import Silent
from tests.predict.place import make_place


@pytest.fixture
def place(tmp_path: Path, gpt2: Path) -> Path:
    return make_place(tmp_path, gpt2)


def alone(place: Path, out: str, **options: Any) -> Path:
    """One process, this one, with the real engine; the folder of the set."""
    config = load_section(place / "params.yaml", "predict", PredictConfig)
    predict(
        config,
        model=place / "model",
        examples=place / "examples.parquet",
        predictions=place / out / "predictions",
        telemetry=place / out / "telemetry.csv",
        progress=Silent(),
        **options,
    )
    return place / out / "predictions"


def torchrun(place: Path, out: str, *more: str, ranks: int = 2) -> subprocess.Popen[str]:
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)),
        *("--master-port", str(free_port()), "-m", "stages.predict", "--model", "model"),
        *("--examples", "examples.parquet", "--predictions", f"{out}/predictions"),
        *("--telemetry", f"{out}/telemetry.csv", *more),
    ]
    return subprocess.Popen(
        command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_two_ranks_three_shards_and_their_merge_are_the_bytes_of_one_process(place: Path) -> None:
    expected = files_of(alone(place, "one"))
    run = torchrun(place, "two")
    for number in (1, 2, 3):
        shards = alone(place, "three", shard=Shard(number, 3))
        alone(place, f"host{number}", shard=Shard(number, 3))
    merge(list(place.glob("host*/.partial/*")), place / "merged")
    stdout, stderr = run.communicate(timeout=120)
    assert run.returncode == 0, stderr
    assert files_of(place / "two/predictions") == expected
    assert files_of(shards) == expected
    assert files_of(place / "merged") == expected
    # Both made chunks, one said what came of it, and the telemetry is of them all.
    assert set(re.findall(r"rank (\d): chunk-\d", stderr)) == {"0", "1"}
    assert stdout.count("40 rows in 10 chunks (10 made, 0 kept)") == 1
    assert len((place / "two/telemetry.csv").read_text().splitlines()) == 11


def chunks(place: Path, out: str) -> list[Path]:
    return list((place / out).glob(".partial/*/chunk-*.parquet"))


def process_of_rank(place: Path, rank: int, agent: int) -> int:
    """Process id of the worker of ``rank`` that torchrun, process ``agent``, has started."""
    for folder in Path("/proc").iterdir():
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent == agent and f"RANK={rank}".encode() in environment:
            return int(folder.name)
    raise AssertionError("no such rank")


@pytest.mark.slow
def test_a_rank_that_is_killed_ends_the_job_and_the_next_run_resumes(place: Path) -> None:
    run = torchrun(place, "out", "-S", "predict.generation.max_new_tokens=60")
    deadline = time.monotonic() + 100
    while len(chunks(place, "out")) < 2:
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(process_of_rank(place, 1, run.pid), signal.SIGKILL)
    _, stderr = run.communicate(timeout=40)
    assert run.returncode == 1
    assert "stopped by SIGTERM; run the same command again: " in stderr  # rank 0 was told to
    kept = len(chunks(place, "out"))
    assert 2 <= kept < 10
    assert not (place / "out/predictions").exists()
    resumed = torchrun(place, "out", "-S", "predict.generation.max_new_tokens=60")
    stdout, stderr = resumed.communicate(timeout=100)
    assert resumed.returncode == 0, stderr
    assert f"({10 - kept} made, {kept} kept)" in stdout
    text = (place / "params.yaml").read_text()
    (place / "params.yaml").write_text(text.replace("max_new_tokens: 24", "max_new_tokens: 60"))
    assert files_of(alone(place, "whole")) == files_of(place / "out/predictions")


class Words:
    """A ``TCPStore`` in this process."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def set(self, key: str, value: str) -> None:
        self.values[key] = value.encode()

    def get(self, key: str) -> bytes:
        return self.values[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)

    def add(self, key: str, amount: int) -> int:
        self.values[key] = self.values.get(key, 0) + amount
        return int(self.values[key])


def test_chunks_are_claimed_once() -> None:
    words = Words()
    first, second = (Ranks(words, rank, 2, rank).claim([3, 5, 7]) for rank in (0, 1))
    assert [next(first), next(second), next(first)] == [3, 5, 7]
    assert list(first) == list(second) == []


def test_the_others_rows_are_counted_once() -> None:
    words = Words()
    zero, one = (Ranks(words, rank, 2, rank) for rank in (0, 1))
    assert zero.others() == (0, 0)
    one.count(4, 90)
    one.count(4, 80)
    assert zero.others() == (8, 170)
    assert zero.others() == (0, 0)


def test_the_failure_of_one_is_heard_by_all() -> None:
    words = Words()
    with pytest.raises(ZeroDivisionError), Ranks(words, 1, 2, 1):
        raise ZeroDivisionError("division by zero")
    where = socket.gethostname()
    with pytest.raises(RankError, match=f"^rank 1 on {where} failed: division by zero"):
        Ranks(words, 0, 2, 0).hear("done-1", teller=1)


def test_a_rank_that_gives_no_sign_of_life_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks_module, "_SILENT_SECONDS", 0.3)
    words, started, looks = Words(), time.monotonic(), []

    def beat() -> None:
        looks.append(time.monotonic() - started)
        if looks[-1] < 0.6:
            words.add("beat-1", 1)

    with pytest.raises(RankError, match="rank 1 has given no sign of life"):
        Ranks(words, 0, 2, 0).hear("done-1", teller=1, meanwhile=beat)
    assert looks[-1] > 0.7  # it was waited for as long as it beat


def test_a_living_rank_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks_module, "_BEAT_SECONDS", 0.01)
    words = Words()
    with Ranks(words, 1, 2, 1):
        before = words.add("beat-1", 0)
        time.sleep(0.2)
        assert words.add("beat-1", 0) > before


def test_the_end_of_the_store_is_one_line() -> None:
    class Gone(Words):
        def add(self, key: str, amount: int) -> int:
            raise RuntimeError("Connection reset by peer\nException raised from recvBytes at …")

    with pytest.raises(RankError, match=r"rank 1 has lost the others \(Connection reset by peer\)"):
        next(Ranks(Gone(), 1, 2, 1).claim([0]))


def test_another_model_on_another_node_is_refused(place: Path) -> None:
    words = Words()
    words.set("run", json.dumps({"fingerprint": "f" * 32, "needs_model": True}))
    with pytest.raises(RankError, match="rank 1 finds another run .* differ on its node"):
        alone(place, "out", ranks=Ranks(words, 1, 2, 1))
    with pytest.raises(RankError, match="rank 1 on .* failed: rank 1 finds another run"):
        Ranks(words, 0, 2, 0).hear("done-1", teller=1)


def test_a_folder_that_is_not_shared_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "_VISIBLE_SECONDS", 0.1)
    with pytest.raises(RankError, match="rank 1 on .* does not see .*--shard and `twophase merge`"):
        together.await_card(WorkStore(tmp_path / "predictions", "f"), 1)


@pytest.mark.parametrize(
    ("name", "local_rank", "expected"),
    [("auto", 0, "cuda:0"), ("auto", 1, "cuda:1"), ("cuda", 1, "cuda:1"), ("cuda:0", 1, "cuda:0"),
     ("cpu", 1, "cpu")],
)  # fmt: skip
def test_each_rank_has_a_device_of_its_own(
    name: str, local_rank: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert Ranks(Words(), 5, 8, local_rank).device(name) == expected


def test_more_ranks_than_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    message = "rank 3 has no device of its own: this node has 1; use --nproc-per-node 1, or share"
    with pytest.raises(ConfigError, match=message):
        Ranks(Words(), 3, 4, 1).device("auto")


def test_a_model_that_is_spread_over_a_node_takes_one_rank_there() -> None:
    spread = PredictConfig(device_map="auto")
    assert Ranks(Words(), 1, 2, 0).placed(spread) == spread
    with pytest.raises(ConfigError, match="device_map spreads .*--nproc-per-node 1"):
        Ranks(Words(), 1, 2, 1).placed(spread)
    assert Ranks(Words(), 1, 2, 1).placed(PredictConfig(device="cpu")).device == "cpu"


def test_the_environment() -> None:
    assert Ranks.from_environment({}) is None
    assert Ranks.from_environment({"WORLD_SIZE": "1", "RANK": "0"}) is None
    with pytest.raises(ConfigError, match="MASTER_PORT not: start the ranks with torchrun"):
        Ranks.from_environment({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "here"})
    with pytest.raises(ConfigError, match="MASTER_PORT is set to 'tcp', which is no number"):
        Ranks.from_environment({"WORLD_SIZE": "2", "RANK": "0", "MASTER_PORT": "tcp"})


def test_without_an_agent_rank_0_keeps_the_store() -> None:
    environ = {
        "WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
    }  # fmt: skip
    zero = Ranks.from_environment(environ)
    one = Ranks.from_environment(environ | {"RANK": "1"})
    assert zero is not None
    assert one is not None
    zero.tell("missing", [1, 2])
    assert one.hear("missing", teller=0) == [1, 2]
    restarted = Ranks.from_environment(environ | {"RANK": "1", "TORCHELASTIC_RESTART_COUNT": "1"})
    assert restarted is not None
    assert not restarted._store.check(["missing"])
