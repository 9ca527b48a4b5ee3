"""The prediction set on disk: plan, chunks, seal, damage, mixing, publishing, locking."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import (
    DamagedChunkError,
    FingerprintError,
    LockedStoreError,
    MissingChunksError,
    PredictionSetError,
)
from pipeline.schema import chunk_schema
from pipeline.store.card import RUN_CARD, RunCard
from pipeline.store.chunk import ChunkReader, chunk_index, chunk_name, write_chunk
from pipeline.store.prediction_set import SUMS, PredictionSet
from pipeline.store.work import WorkStore


def make_card(rows: int = 7, chunk_rows: int = 3, first_row: int = 0, **inputs: object) -> RunCard:
    return RunCard.plan(
        inputs={"model": "m", **inputs},
        rows=rows,
        chunk_rows=chunk_rows,
        first_row=first_row,
        versions={"torch": "1"},
    )


def chunk_of(card: RunCard, chunk: int) -> pa.Table:
    start, stop = card.bounds(chunk)
    rows = range(start, stop)
    return pa.table(
        {
            "row": list(rows),
            "id": [f"id-{row}" for row in rows],
            "prediction_ids": [[row, row + 1] for row in rows],
            "references": [["a reference"] for _ in rows],
            "finish_reason": pa.array(["eos" for _ in rows]).dictionary_encode(),
            "prompt_tokens": [5 for _ in rows],
            "truncated": [False for _ in rows],
            "batch_rows": [2 for _ in rows],
        },
        schema=chunk_schema(text=False),
    )


def fill(store: WorkStore, card: RunCard) -> None:
    store.begin(card)
    store.write_tokenizer("{}")
    for chunk in store.missing():
        store.write(chunk, chunk_of(card, chunk), {"elapsed_s": 1.0})


def published(folder: Path, **inputs: object) -> WorkStore:
    card = make_card(**inputs)
    store = WorkStore(folder / "predictions", card.fingerprint)
    with store.locked():
        fill(store, card)
        store.seal()
        store.publish()
    return store


@given(rows=st.integers(0, 500), chunk_rows=st.integers(1, 100), first=st.integers(0, 1000))
def test_the_plan_covers_every_row_once(rows: int, chunk_rows: int, first: int) -> None:
    card = make_card(rows, chunk_rows, first)
    covered = [row for chunk in range(card.chunks) for row in range(*card.bounds(chunk))]
    assert covered == list(range(first, first + rows))
    assert all(card.bounds(chunk)[0] < card.bounds(chunk)[1] for chunk in range(card.chunks))
    assert card.rows_in(range(card.chunks)) == rows


def test_the_rows_of_a_slice_keep_their_numbers(tmp_path: Path) -> None:
    card = make_card(rows=5, first_row=40)
    store = WorkStore(tmp_path / "predictions", card.fingerprint)
    fill(store, card)
    store.seal()
    prediction_set = PredictionSet(store.folder)
    tables = [prediction_set.reader(chunk).read() for chunk in prediction_set.present()]
    assert pa.concat_tables(tables).column("row").to_pylist() == [40, 41, 42, 43, 44]
    moved = make_card(rows=5, first_row=41)
    with pytest.raises(DamagedChunkError, match="rows do not count on from 41"):
        ChunkReader(store.folder / chunk_name(0), moved, 0).read()


@pytest.mark.parametrize("chunk", [0, 7, 99999, 100000, 1234567])
def test_chunk_names_are_read_back(chunk: int) -> None:
    assert chunk_index(chunk_name(chunk)) == chunk


@pytest.mark.parametrize("name", ["chunk-1.parquet", "chunk-000001.parquet", "run.json", "x"])
def test_other_names_are_not_chunks(name: str) -> None:
    assert chunk_index(name) is None


def test_a_published_set_is_checked_by_sha256sum(tmp_path: Path) -> None:
    published(tmp_path)
    check = subprocess.run(
        ["sha256sum", "-c", SUMS], cwd=tmp_path / "predictions", capture_output=True, text=True
    )
    assert check.returncode == 0, check.stderr
    assert check.stdout.count(": OK") == 3 + 2  # chunks, card, tokenizer


def test_the_same_rows_are_the_same_bytes(tmp_path: Path) -> None:
    card = make_card()
    for name in ("a", "b"):
        write_chunk(tmp_path / name, chunk_of(card, 0), card, 0)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_set_reads_back(tmp_path: Path) -> None:
    store = published(tmp_path)
    prediction_set = PredictionSet(tmp_path / "predictions")
    assert prediction_set.sealed
    assert prediction_set.missing() == []
    tables = [prediction_set.reader(chunk).read() for chunk in prediction_set.present()]
    assert pa.concat_tables(tables).column("row").to_pylist() == list(range(7))
    assert tables[0].cast(chunk_schema(text=False)).equals(chunk_of(store.card, 0))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_flipped_or_cut_byte_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("set")
    published(folder)
    path = folder / "predictions" / chunk_name(1)
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[position] ^= data.draw(st.integers(1, 255))
    else:
        del content[position:]
    path.unlink()  # it is a hard link: leave the store's own copy alone
    path.write_bytes(content)
    with pytest.raises(DamagedChunkError, match=r"chunk-00001.parquet is damaged.*remake this one"):
        PredictionSet(folder / "predictions").reader(1).read()


def test_an_unsealed_chunk_is_checked_as_far_as_it_can_be(tmp_path: Path) -> None:
    card = make_card()
    path = tmp_path / chunk_name(0)
    write_chunk(path, chunk_of(card, 0), card, 0)
    whole = path.read_bytes()
    generator = random.Random(0)
    for _ in range(200):  # no sha256 here: damage is either named or leaves the rows alone
        content = bytearray(whole)
        content[generator.randrange(len(content))] ^= generator.randrange(1, 256)
        path.write_bytes(content)
        try:
            ChunkReader(path, card, 0).read()
        except (DamagedChunkError, FingerprintError):
            continue
    path.write_bytes(whole[:100])
    with pytest.raises(DamagedChunkError, match="chunk-00000"):
        ChunkReader(path, card, 0)


def test_a_chunk_of_another_run_is_refused(tmp_path: Path) -> None:
    published(tmp_path / "a")
    other = published(tmp_path / "b", model="other")
    name = chunk_name(1)
    (tmp_path / "a/predictions" / SUMS).unlink()
    os.replace(tmp_path / "b/predictions" / name, tmp_path / "a/predictions" / name)
    with pytest.raises(FingerprintError, match=f"{name} belongs to run {other.fingerprint}"):
        PredictionSet(tmp_path / "a/predictions").reader(1)


def test_a_chunk_under_another_name_is_refused(tmp_path: Path) -> None:
    published(tmp_path)
    folder = tmp_path / "predictions"
    (folder / SUMS).unlink()
    os.replace(folder / chunk_name(1), folder / chunk_name(0))
    with pytest.raises(DamagedChunkError, match="its footer says chunk 1"):
        PredictionSet(folder).reader(0)


def test_wrong_columns_are_refused(tmp_path: Path) -> None:
    card = make_card()
    path = tmp_path / chunk_name(0)
    write_chunk(path, chunk_of(card, 0).drop_columns("truncated"), card, 0)
    with pytest.raises(DamagedChunkError, match="its columns are"):
        ChunkReader(path, card, 0)
    wrong = chunk_of(card, 0)
    column = wrong.column("prompt_tokens").cast(pa.float64())
    write_chunk(path, wrong.set_column(5, "prompt_tokens", column), card, 0)
    with pytest.raises(DamagedChunkError, match="column prompt_tokens is double"):
        ChunkReader(path, card, 0)


def test_a_card_that_plans_fewer_rows_does_not_fit_its_chunks(tmp_path: Path) -> None:
    card = make_card(rows=8)
    path = tmp_path / chunk_name(2)
    write_chunk(path, chunk_of(card, 2), card, 2)
    with pytest.raises(DamagedChunkError, match="it has 2 rows, not 1"):
        ChunkReader(path, make_card(rows=7), 2)


def test_shuffled_rows_are_refused(tmp_path: Path) -> None:
    card = make_card()
    path = tmp_path / chunk_name(0)
    write_chunk(path, chunk_of(card, 0).take([1, 0, 2]), card, 0)
    with pytest.raises(DamagedChunkError, match="rows do not count on from 0"):
        ChunkReader(path, card, 0).read()


def test_missing_chunks_are_named(tmp_path: Path) -> None:
    published(tmp_path)
    (tmp_path / "predictions" / chunk_name(1)).unlink()
    prediction_set = PredictionSet(tmp_path / "predictions")
    with pytest.raises(
        MissingChunksError,
        match=r"1 of 3 chunks are missing \(chunk-00001.parquet\); make them with `twophase pred",
    ):
        prediction_set.require_complete()


def test_a_stray_chunk_is_refused(tmp_path: Path) -> None:
    published(tmp_path)
    folder = tmp_path / "predictions"
    shutil.copy(folder / chunk_name(2), folder / chunk_name(3))
    with pytest.raises(PredictionSetError, match="plans 3 chunks: two runs were mixed"):
        PredictionSet(folder)


def test_what_is_not_a_set_says_so(tmp_path: Path) -> None:
    with pytest.raises(PredictionSetError, match="is not a prediction set: it has no run.json"):
        PredictionSet(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 99}, "has schema version 99; this twophase reads 1"),
        ({"rows": 100}, "was altered"),
        ({"inputs": {"model": "n"}}, "was altered"),
        ({"first_row": -1}, "was altered"),
        ({"decode": None}, "is damaged"),
        ({"extra": 1}, "is damaged"),
    ],
)
def test_an_altered_card_is_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    published(tmp_path)
    path = tmp_path / "predictions" / RUN_CARD
    card = json.loads(path.read_text())
    path.unlink()
    path.write_text(json.dumps(card | change))
    with pytest.raises(PredictionSetError, match=message):
        PredictionSet(tmp_path / "predictions")


def test_a_damaged_chunk_in_the_store_is_made_again_alone(tmp_path: Path) -> None:
    store = published(tmp_path)
    path = store.folder / chunk_name(1)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)  # the published file is the same inode: both are damaged
    with store.locked():
        assert store.missing() == [1]
        assert not store.sealed
        store.write(1, chunk_of(store.card, 1), {})
        store.seal()
        store.publish()
    assert PredictionSet(tmp_path / "predictions").reader(1).read().num_rows == 3


def test_an_altered_tokenizer_breaks_the_seal(tmp_path: Path) -> None:
    store = published(tmp_path)
    (store.folder / "tokenizer/tokenizer.json").write_text("{ }")
    assert store.missing() == []
    assert not store.sealed


def test_publishing_leaves_the_store_and_costs_no_disk(tmp_path: Path) -> None:
    store = published(tmp_path)
    assert (store.folder / chunk_name(0)).samefile(tmp_path / "predictions" / chunk_name(0))
    for name in (RUN_CARD, SUMS):  # small, and copied: an edit of one must not reach the other
        assert not (store.folder / name).samefile(tmp_path / "predictions" / name)
    shutil.rmtree(tmp_path / "predictions")  # as DVC does with an out it has not recorded
    store.publish()
    assert PredictionSet(tmp_path / "predictions").missing() == []


def test_publishing_again_changes_nothing(tmp_path: Path) -> None:
    store = published(tmp_path)
    before = (tmp_path / "predictions").stat().st_ino
    store.publish()
    assert (tmp_path / "predictions").stat().st_ino == before


def test_sealed_stores_of_other_settings_are_pruned_unfinished_ones_stay(tmp_path: Path) -> None:
    first = published(tmp_path)
    unfinished_card = make_card(model="unfinished")
    unfinished = WorkStore(tmp_path / "predictions", unfinished_card.fingerprint)
    unfinished.begin(unfinished_card)
    unfinished.write(0, chunk_of(unfinished_card, 0), {})
    shutil.rmtree(tmp_path / "predictions")
    published(tmp_path, model="second")
    assert not first.folder.exists()
    assert (unfinished.folder / chunk_name(0)).exists()


def test_another_fingerprint_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    published(tmp_path)
    card = make_card(model="other")
    store = WorkStore(tmp_path / "predictions", card.fingerprint)
    with pytest.raises(FingerprintError, match=r"other settings \(differing: model\).*--overwrite"):
        store.check_target(card.inputs, overwrite=False)
    store.check_target(card.inputs, overwrite=True)


def test_a_folder_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "predictions").mkdir()
    (tmp_path / "predictions/thesis.tex").write_text("years of work")
    card = make_card()
    store = WorkStore(tmp_path / "predictions", card.fingerprint)
    with pytest.raises(PredictionSetError, match="is not a prediction set; name another folder"):
        store.check_target(card.inputs, overwrite=True)


def test_chunks_of_a_set_without_its_store_are_taken_over(tmp_path: Path) -> None:
    published(tmp_path / "a")
    shutil.copytree(tmp_path / "a/predictions", tmp_path / "b/predictions")  # as rsync would
    (tmp_path / "b/predictions" / chunk_name(1)).write_bytes(b"PAR1 cut")
    card = make_card()
    store = WorkStore(tmp_path / "b/predictions", card.fingerprint)
    with store.locked():
        assert store.adopt() == 2
        store.begin(card)
        assert store.missing() == [1]


def test_other_versions_do_not_mix_unless_allowed(tmp_path: Path) -> None:
    card = make_card()
    store = WorkStore(tmp_path / "predictions", card.fingerprint)
    store.begin(card)
    newer = RunCard.plan(inputs=card.inputs, rows=7, chunk_rows=3, versions={"torch": "2"})
    with pytest.raises(FingerprintError, match=r"other versions \(torch 1 → 2\).*--allow-mixed"):
        store.begin(newer)
    store.begin(newer, allow_mixed=True)
    assert store.card == card


def test_sealing_an_incomplete_store_is_an_error(tmp_path: Path) -> None:
    card = make_card()
    store = WorkStore(tmp_path / "predictions", card.fingerprint)
    store.begin(card)
    with pytest.raises(MissingChunksError):
        store.seal()


HOLD = """
import sys, time
from pathlib import Path
from pipeline.store import lock
with lock.hold(Path(sys.argv[1]), shared=sys.argv[2] == "shared"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(("theirs", "ours", "refused"), [
    ("exclusive", False, True),
    ("exclusive", True, True),
    ("shared", False, True),
    ("shared", True, False),
])  # fmt: skip
def test_a_second_process_on_a_store(
    tmp_path: Path, theirs: str, ours: bool, refused: bool
) -> None:
    card = make_card()
    store = WorkStore(tmp_path / "predictions", card.fingerprint)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.folder), theirs], stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        if refused:
            message = f"written by process {holder.pid} on"
            with pytest.raises(LockedStoreError, match=message), store.locked(shared=ours):
                pass
        else:
            with store.locked(shared=ours):
                pass
    finally:
        holder.kill()
        holder.communicate()
    with store.locked():  # the lock ended with its process
        pass


def test_only_final_names_count(tmp_path: Path) -> None:
    card = make_card()
    store = WorkStore(tmp_path / "predictions", card.fingerprint)
    fill(store, card)
    os.replace(store.folder / chunk_name(2), store.folder / f".staged-{chunk_name(2)}")
    assert store.missing() == [2]


WRITE = """
import sys
from pathlib import Path
from pipeline.store.work import WorkStore
from tests.store.test_store import chunk_of, make_card
card = make_card(rows=3)
store = WorkStore(Path(sys.argv[1]) / "predictions", card.fingerprint)
with store.locked(shared=True):
    store.begin(card)
    table = chunk_of(card, 0)
    table = table.set_column(5, "prompt_tokens", [[int(sys.argv[2])] * 3]).cast(table.schema)
    for _ in range(60):
        store.write(0, table, {"by": sys.argv[2]})
"""


def test_processes_that_write_one_chunk_at_once_leave_a_chunk_with_its_own_hash(
    tmp_path: Path,
) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path), str(number)])
        for number in (1, 2)
    ]
    card = make_card(rows=3)
    store = WorkStore(tmp_path / "predictions", card.fingerprint)
    while any(writer.poll() is None for writer in writers):
        pass
    assert [writer.returncode for writer in writers] == [0, 0]
    assert store.missing() == []
    assert not list(store.folder.glob(".*.tmp-*"))
    store.write_tokenizer("{}")
    store.seal()
    by = PredictionSet(store.folder).reader(0).read().column("prompt_tokens").to_pylist()
    assert str(by[0]) == store.telemetry(0)["by"]


def test_a_hold_that_is_shared_lets_ranks_in_and_no_second_run(tmp_path: Path) -> None:
    store = WorkStore(tmp_path / "predictions", "f" * 32)
    with store.locked() as hold:
        with pytest.raises(LockedStoreError), store.locked(shared=True):
            pass
        hold.share()
        with store.locked(shared=True):
            pass
        with pytest.raises(LockedStoreError), store.locked():
            pass


def test_what_a_kill_left_half_written_is_swept_away(tmp_path: Path) -> None:
    store = published(tmp_path)
    before = sorted(path.name for path in store.folder.iterdir())
    (store.folder / ".chunk-00001.parquet.tmp-1-aaaa").write_bytes(b"half")
    (store.folder / "..chunk-00001.parquet.tmp-1-aaaa.tmp-1-bbbb").write_bytes(b"half")
    with store.locked():
        store.sweep(3)
    assert sorted(path.name for path in store.folder.iterdir()) == before


def mended(folder: Path) -> WorkStore:
    """What a run does with a store: find what is missing, make it, seal, publish."""
    card = make_card()
    store = WorkStore(folder / "predictions", card.fingerprint)
    with store.locked():
        store.sweep(card.chunks)
        missing = store.missing(range(card.chunks))
        if missing or not store.has_tokenizer:
            store.begin(card)
            store.write_tokenizer("{}")
            for chunk in missing:
                store.write(chunk, chunk_of(card, chunk), {})
        store.seal()
        store.publish()
    return store


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (SUMS, "".join(f"{'0' * 64}  {name}\n" for name in ("run.json", "chunk-00000.parquet"))),
        (SUMS, ""),
        (SUMS, "cut in the midd"),
        (SUMS, "\0\xff"),
        (RUN_CARD, "{"),
        (RUN_CARD, '"skip_special_tokens": true → false'),
        (RUN_CARD, '"rows": 7 → 6'),
        (RUN_CARD, "[" * 100_000),
        ("tokenizer/tokenizer.json", "{ }"),
    ],
)
@pytest.mark.parametrize("where", ["store", "published", "both"])
def test_an_altered_seal_or_card_is_noticed_and_mended_and_no_chunk_is_made_again(
    tmp_path: Path, where: str, name: str, content: str
) -> None:
    store = published(tmp_path)
    whole = {p.name: p.read_bytes() for p in (tmp_path / "predictions").rglob("*") if p.is_file()}
    made = {path: path.stat().st_mtime_ns for path in store.folder.glob("chunk-*")}
    folders = {"store": [store.folder], "published": [tmp_path / "predictions"]}
    for folder in folders.get(where) or [store.folder, tmp_path / "predictions"]:
        if " → " in content:
            old, new = content.split(" → ")
            prefix = old.rpartition(" ")[0]
            text = (folder / name).read_text().replace(old, f"{prefix} {new}")
            assert text != (folder / name).read_text()
        else:
            text = content
        (folder / name).write_text(text)
        if folder != store.folder and name != "tokenizer/tokenizer.json":
            with pytest.raises(PredictionSetError, match=r"altered|damaged"):
                PredictionSet(folder)
    if where != "store" and name == RUN_CARD:
        shutil.rmtree(tmp_path / "predictions")  # a card that cannot be read is not replaced
    mended(tmp_path)
    assert whole == {
        p.name: p.read_bytes() for p in (tmp_path / "predictions").rglob("*") if p.is_file()
    }
    assert made == {path: path.stat().st_mtime_ns for path in store.folder.glob("chunk-*")}


def test_two_runs_that_end_on_one_folder_do_not_replace_each_other(tmp_path: Path) -> None:
    cards = [make_card(), make_card(model="other")]
    stores = [WorkStore(tmp_path / "predictions", card.fingerprint) for card in cards]
    with stores[0].locked(), stores[1].locked():
        for store, card in zip(stores, cards, strict=True):
            store.check_target(card.inputs, overwrite=False)  # both may begin
            fill(store, card)
            store.seal()
        stores[0].publish()
        with pytest.raises(FingerprintError, match="holds predictions of other settings"):
            stores[1].publish()
    assert PredictionSet(tmp_path / "predictions").card == cards[0]
    assert stores[1].sealed  # nothing is lost
    with stores[1].locked():
        stores[1].publish(overwrite=True)
    assert PredictionSet(tmp_path / "predictions").card == cards[1]


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_not_part_of_a_set_is_never_lost(tmp_path: Path, overwrite: bool) -> None:
    store = published(tmp_path)
    (tmp_path / "predictions/NOTES.md").write_text("mine")
    (tmp_path / "predictions" / chunk_name(1)).unlink()
    with pytest.raises(PredictionSetError, match=r"holds NOTES.md, which is not part of"):
        store.publish(overwrite=overwrite)
    assert (tmp_path / "predictions/NOTES.md").exists()


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "predictions").symlink_to(tmp_path / "disk/set")  # dangling, at first
    store = published(tmp_path)
    assert (tmp_path / "predictions").is_symlink()
    assert store.folder.parent == tmp_path / "disk/.partial"
    assert PredictionSet(tmp_path / "predictions").missing() == []
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(PredictionSetError, match="a link that leads to itself"):
        WorkStore(tmp_path / "loop", "x")


def test_what_cannot_be_replaced_by_a_rename_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for target, reason in ((Path("."), "the current folder"), (Path("/proc"), "a mount point")):
        with pytest.raises(
            PredictionSetError, match=f"cannot be replaced as a whole, being {reason}"
        ):
            WorkStore(target, "x").check_target({}, overwrite=True)


def test_a_store_in_which_nothing_began_is_forgotten(tmp_path: Path) -> None:
    card = make_card()
    store = WorkStore(tmp_path / "predictions", card.fingerprint)
    with store.locked():
        store.forget()
    assert not store.folder.exists()
    with store.locked():
        store.begin(card)
        store.forget()
    assert store.begun


def test_a_seal_that_lists_other_files_is_refused(tmp_path: Path) -> None:
    published(tmp_path)
    path = tmp_path / "predictions" / SUMS
    path.write_text(path.read_text() + f"{'0' * 64}  ../escape\n")
    with pytest.raises(PredictionSetError, match=r"does not list just the files of this set"):
        PredictionSet(tmp_path / "predictions")
