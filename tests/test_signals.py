"""Signals as exceptions, that wait for a write and are not lost."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from pipeline import signals
from pipeline.predict.shard import Shard
from pipeline.store import work
from tests.predict.fake import Silent
from tests.predict.test_run import place, rows_of, run

__all__ = ["place"]

BOTH = [(signal.SIGTERM, signals.Terminated), (signal.SIGINT, KeyboardInterrupt)]


def arrive(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(0.2)  # a handler runs between two bytecodes: here


@pytest.mark.parametrize(("number", "raised"), BOTH)
def test_a_signal_raises_at_once(number: int, raised: type[BaseException]) -> None:
    before = signal.getsignal(number)
    with pytest.raises(raised), signals.handled():
        arrive(number)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("number", "raised"), BOTH)
def test_a_deferred_one_waits_for_the_end_of_the_block(
    number: int, raised: type[BaseException]
) -> None:
    steps = []

    def work() -> None:
        with signals.deferred():
            with signals.deferred():
                arrive(number)
                steps.append("inner")
            steps.append("outer")
        steps.append("after")

    with pytest.raises(raised), signals.handled():
        work()
    assert steps == ["inner", "outer"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_a_finaliser_swallowed_is_not_lost() -> None:
    class Finalised:
        def __del__(self) -> None:
            arrive(signal.SIGTERM)

    with signals.handled():
        Finalised()  # raises nothing here
        with pytest.raises(signals.Terminated):
            signals.check()


def test_other_threads_have_nothing_to_defer() -> None:
    done: list[bool] = []

    def work() -> None:
        with signals.deferred():
            signals.check()
        done.append(True)

    with signals.handled():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert done == [True]


def test_a_chunk_that_is_being_written_is_kept(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal arrives when the third chunk is half on the disk."""
    real = work.write_chunk_atomically
    written = []

    def write(path: Path, *arguments: object) -> str:
        written.append(path)
        if len(written) == 3:
            arrive(signal.SIGTERM)
        return real(path, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "write_chunk_atomically", write)
    with pytest.raises(signals.Terminated) as stopped, signals.handled():
        run(place)
    assert stopped.value.__notes__ == ["run the same command again: 3 of 5 chunks are done"]
    assert run(place).kept == 3
    assert len(rows_of(place / "out")) == 23


def test_the_note_counts_the_chunks_of_all_shards(place: Path) -> None:
    run(place, shard=Shard(2, 2))
    with pytest.raises(signals.Terminated) as stopped, signals.handled():
        run(place, progress=Silent(lambda chunk: arrive(signal.SIGTERM)), shard=Shard(1, 2))
    assert stopped.value.__notes__ == ["run the same command again: 3 of 5 chunks are done"]


def test_the_handler_lets_a_child_die_of_ctrl_c() -> None:
    with signals.handled():
        child = subprocess.Popen(["sleep", "60"])
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=10) == -signal.SIGINT
