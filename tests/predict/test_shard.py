"""Parts of the chunks: their numbers, one folder, several folders, at the same time."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ConfigError, LockedStoreError, OutOfMemoryError
from pipeline.predict.shard import Shard
from pipeline.store.merge import merge
from pipeline.store.prediction_set import SUMS
from pipeline.store.work import WorkStore
from tests.predict.fake import FakeEngine
from tests.predict.test_oom import SmallEngine
from tests.predict.test_run import TEXTS, never, place, run

__all__ = ["place"]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@given(st.integers(1, 12), st.integers(0, 60))
def test_every_chunk_is_in_one_shard(of: int, chunks: int) -> None:
    shards = [Shard.parse(f"{number}/{of}").chunks(chunks) for number in range(1, of + 1)]
    assert sorted(chunk for shard in shards for chunk in shard) == list(range(chunks))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2", "write i/n, such as 2/8"),
        ("a/b", "write i/n"),
        ("-1/4", "write i/n"),
        ("0/4", "numbered 1 to 4; job arrays that count from 0 add 1 to their task id"),
        ("5/4", "numbered 1 to 4$"),
        ("1/0", "numbered 1 to 0"),
    ],
)
def test_what_is_no_shard(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"--shard {text}: .*{message}"):
        Shard.parse(text)


def test_three_shards_in_one_folder_are_the_bytes_of_one_run(place: Path) -> None:
    run(place, out="whole")
    for number in (3, 1):  # in any order
        result = run(place, out="shards", shard=Shard(number, 3))
        assert result.tally is None
        assert not (place / "shards/predictions").exists()
    assert result.done == 3
    last = run(place, out="shards", shard=Shard(2, 3))
    assert (last.made, last.kept, last.done) == (2, 0, 5)
    assert last.tally is not None
    assert files_of(place / "shards/predictions") == files_of(place / "whole/predictions")
    # Idempotent: any shard, and the whole run, find it finished, without a model.
    before = (place / "shards/predictions").stat().st_ino
    assert run(place, out="shards", shard=Shard(1, 3), make_engine=never).tally is not None
    assert run(place, out="shards", make_engine=never).kept == 5
    assert (place / "shards/predictions").stat().st_ino == before


def test_the_shard_that_finds_all_complete_publishes_though_it_made_nothing(place: Path) -> None:
    for number in (1, 2, 3):
        run(place, shard=Shard(number, 3))
    shutil.rmtree(place / "out/predictions")
    (store,) = (place / "out/.partial").glob("*/")
    (store / SUMS).unlink()  # as if each had been killed before it sealed
    assert run(place, shard=Shard(2, 3), make_engine=never).tally is not None
    assert (place / "out/predictions" / SUMS).exists()


def test_more_shards_than_chunks(place: Path) -> None:
    empty = run(place, shard=Shard(7, 7), make_engine=never)
    assert (empty.made, empty.done, empty.tally) == (0, 0, None)
    for number in range(1, 6):
        run(place, shard=Shard(number, 7))
    assert (place / "out/predictions" / SUMS).exists()


def test_a_killed_shard_resumes_its_own_chunks_alone(place: Path) -> None:
    run(place, shard=Shard(2, 2))
    with pytest.raises(RuntimeError, match="fell over"):
        run(place, FakeEngine(fail_at=TEXTS[11]), shard=Shard(1, 2))
    result = run(place, shard=Shard(1, 2))
    assert (result.made, result.kept) == (2, 1)
    assert result.tally is not None


def test_a_damaged_chunk_of_a_finished_set_is_made_again_by_its_shard(place: Path) -> None:
    for number in (1, 2):
        run(place, shard=Shard(number, 2))
    before = files_of(place / "out/predictions")
    (store,) = (place / "out/.partial").glob("*/")
    (store / "chunk-00003.parquet").write_bytes(b"cut")
    assert run(place, shard=Shard(1, 2), make_engine=never).tally is None
    assert run(place, shard=Shard(2, 2)).made == 1
    assert files_of(place / "out/predictions") == before


def test_a_run_on_the_whole_waits_for_no_shard(place: Path) -> None:
    run(place, shard=Shard(1, 2))
    (store,) = (place / "out/.partial").glob("*/")
    with WorkStore(place / "out/predictions", store.name).locked(shared=True):
        with pytest.raises(LockedStoreError, match="is being written by process"):
            run(place)
        assert run(place, shard=Shard(2, 2)).tally is not None


def test_overwrite_is_refused(place: Path) -> None:
    with pytest.raises(ConfigError, match="would remove what other shards have made"):
        run(place, shard=Shard(1, 2), overwrite=True)


def test_rows_that_do_not_fit_are_named_by_their_shard(place: Path) -> None:
    with pytest.raises(OutOfMemoryError, match="^1 row does .*row 14 .*2 of 5 chunks"):
        run(place, SmallEngine(room=118), shard=Shard(1, 2))


SHARD = """
import sys, time
from pathlib import Path
from pipeline.predict.shard import Shard
from tests.predict.test_run import run
place, number, start = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
time.sleep(max(0, start - time.time()))
print(run(place, out="at once", chunk_rows=2, shard=Shard(number, 2)).tally is not None)
"""


def test_shards_at_the_same_time_do_no_harm(place: Path) -> None:
    start = str(time.time() + 3)
    shards = [
        subprocess.Popen(
            [sys.executable, "-c", SHARD, str(place), str(number), start],
            stdout=subprocess.PIPE, text=True,
        )
        for number in (1, 2, 2)  # one was started twice
    ]  # fmt: skip
    said = [shard.communicate(timeout=100)[0] for shard in shards]
    assert [shard.returncode for shard in shards] == [0, 0, 0]
    assert "True\n" in said
    run(place, out="whole", chunk_rows=2)
    assert files_of(place / "at once/predictions") == files_of(place / "whole/predictions")


def test_shards_on_hosts_without_a_shared_folder_are_merged(place: Path) -> None:
    run(place, out="whole")
    parts = []
    for number in (1, 2, 3):
        run(place, out=f"host{number}", shard=Shard(number, 3))
        parts += (place / f"host{number}/.partial").glob("*/")
    card = merge(parts, place / "merged/predictions", telemetry=place / "merged/telemetry.csv")
    assert card.chunks == 5
    assert files_of(place / "merged/predictions") == files_of(place / "whole/predictions")
    lines = (place / "merged/telemetry.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines] == ["rows", "5", "5", "5", "5", "3"]
    # With its store beside it, the set is what a run finds finished.
    assert run(place, out="merged", make_engine=never).kept == 5
