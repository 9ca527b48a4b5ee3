"""A URL as the target of runs: what is put when, resumed, shared, refused, mended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from pipeline.errors import DamagedChunkError, FingerprintError, PredictionSetError
from pipeline.inspect.verify import verify
from pipeline.store import upload
from pipeline.store.card import RUN_CARD, RunCard
from pipeline.store.chunk import chunk_name
from pipeline.store.merge import merge
from pipeline.store.place import open_place
from pipeline.store.prediction_set import SUMS, TOKENIZER_FILE, PredictionSet
from pipeline.store.url import Url
from pipeline.store.work import WorkStore
from tests.store.test_store import chunk_of, fill, make_card, published

pytest.importorskip("fsspec")
CHUNKS = [chunk_name(chunk) for chunk in range(3)]
WHOLE = {RUN_CARD, TOKENIZER_FILE, SUMS, *CHUNKS}


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(upload, "STORES", tmp_path / "stores")
    return f"memory://{tmp_path.name}/run"


def at(url: str) -> Url:
    place = open_place(url)
    assert isinstance(place, Url)
    return place


def files(url: str) -> dict[str, bytes]:
    return {name: at(url).read(name) for name in at(url).sizes()}


def host(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From now on, stores are made on another machine."""
    monkeypatch.setattr(upload, "STORES", tmp_path / name)


def faults(url: str) -> list[str]:
    """What verify finds; the tokenizer is none here."""
    return [fault for fault in verify(url).faults if "not a tokenizer" not in fault]


def record(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is removed (``-name``) and written (``+name``) from now on."""
    events: list[str] = []
    remove, put, write = Url.remove, Url.put, Url.write

    def removing(self: Url, names: Iterable[str]) -> None:
        for name in names:
            events.append(f"-{name}")
            remove(self, [name])

    def putting(self: Url, name: str, path: Path) -> None:
        put(self, name, path)
        events.append(f"+{name}")

    def writing(self: Url, name: str, content: bytes, *, new: bool = False) -> None:
        write(self, name, content, new=new)
        events.append(f"+{name}")

    monkeypatch.setattr(Url, "remove", removing)
    monkeypatch.setattr(Url, "put", putting)
    monkeypatch.setattr(Url, "write", writing)
    return events


def run(url: str, card: RunCard, chunks: range = range(3), *, overwrite: bool = False) -> list[int]:
    """What predict does with a store; returns the chunks that it made."""
    store = WorkStore(url, card.fingerprint)
    store.check_target(card.inputs, overwrite=overwrite)
    with store.locked(shared=True):
        if overwrite:
            store.discard()
        store.adopt(chunks)
        store.begin(card, overwrite=overwrite)
        store.write_tokenizer("{}")
        missing = store.missing(chunks)
        for chunk in missing:
            store.write(chunk, chunk_of(card, chunk), {"elapsed_s": 1.0})
            store.target.put(store, chunk)
        store.target.deliver(store, chunks)
        store.target.gather(store)
        if not store.lacking():
            store.seal()
            store.publish(overwrite=overwrite)
    return missing


def test_a_set_is_built_in_order_and_is_the_bytes_of_a_folder(url: str, tmp_path: Path) -> None:
    card = make_card()
    seen: list[set[str]] = []
    store = WorkStore(url, card.fingerprint)
    with store.locked():
        fill(store, card)
        for chunk in range(3):
            store.target.put(store, chunk)
            seen.append(set(at(url).sizes()) - {f".partial/telemetry-0000{n}.json" for n in (0, 1)})
        partial = PredictionSet(url)
        assert not partial.sealed
        assert partial.missing() == []
        store.seal()
        store.publish()
    assert seen[0] == {RUN_CARD, CHUNKS[0]}
    assert seen[1] == {RUN_CARD, *CHUNKS[:2]}
    assert set(at(url).sizes()) == WHOLE
    published(tmp_path / "local")
    local = tmp_path / "local/predictions"
    assert files(url) == {name: (local / name).read_bytes() for name in WHOLE}
    assert faults(url) == []


def test_another_machine_goes_on_with_what_is_there(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = make_card()
    assert run(url, card, range(0, 2)) == [0, 1]
    assert SUMS not in at(url).sizes()
    host("other", monkeypatch, tmp_path)
    assert run(url, card) == [2]
    whole = files(url)
    assert set(whole) == WHOLE
    for name in ("other", "third"):  # with its store, and without one
        host(name, monkeypatch, tmp_path)
        assert run(url, card) == []
    assert files(url) == whole
    store = WorkStore(url, card.fingerprint)
    assert store.telemetry(2)["sha256"]


def test_shards_of_hosts_that_share_nothing_but_the_url(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = make_card(rows=9, chunk_rows=1)
    for number in (2, 0, 1):
        assert SUMS not in at(url).sizes()
        host(f"host{number}", monkeypatch, tmp_path)
        assert run(url, card, range(number, 9, 3)) == list(range(number, 9, 3))
    assert PredictionSet(url).sealed
    # The one that sealed knows how long each chunk took, wherever it was made.
    store = WorkStore(url, card.fingerprint)
    assert [store.telemetry(chunk)["elapsed_s"] for chunk in range(9)] == [1.0] * 9


def test_what_was_made_and_not_put_is_put_by_the_next_run(url: str) -> None:
    card = make_card()
    store = WorkStore(url, card.fingerprint)
    store.begin(card)
    store.write_tokenizer("{}")
    store.write(1, chunk_of(card, 1), {})  # and here it was killed
    assert CHUNKS[1] not in at(url).sizes()
    assert run(url, card, range(1, 2)) == []
    assert CHUNKS[1] in at(url).sizes()


@pytest.mark.parametrize("sealed", [False, True])
def test_a_chunk_that_was_altered_there_is_made_again_alone(
    url: str, sealed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = make_card()
    run(url, card, range(3 if sealed else 2))
    right = at(url).read(CHUNKS[1])
    at(url).write(CHUNKS[1], b"x" * len(right))
    host("other", monkeypatch, tmp_path)
    assert run(url, card) == ([1] if sealed else [1, 2])
    assert at(url).read(CHUNKS[1]) == right
    assert faults(url) == []


def test_the_last_shard_does_not_seal_what_was_altered_there(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = make_card()
    run(url, card, range(2))
    right = at(url).read(CHUNKS[1])
    at(url).write(CHUNKS[1], b"x" * len(right))
    host("other", monkeypatch, tmp_path)
    assert run(url, card, range(2, 3)) == [2]
    assert at(url).sizes().keys() & {SUMS, CHUNKS[1]} == set()
    assert run(url, card) == [1]
    assert at(url).read(CHUNKS[1]) == right
    assert faults(url) == []


def test_a_chunk_that_is_gone_there_is_put_again_and_the_seal_is_last(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = make_card()
    run(url, card)
    whole = files(url)
    at(url).remove([CHUNKS[0]])
    events = record(monkeypatch)
    assert run(url, card) == []
    assert files(url) == whole
    assert events.index(f"-{SUMS}") < events.index(f"+{CHUNKS[0]}") < events.index(f"+{SUMS}")


@pytest.mark.parametrize("name", [RUN_CARD, TOKENIZER_FILE, SUMS])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_small_files_that_were_altered_there_are_mended(
    url: str, name: str, elsewhere: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = make_card()
    run(url, card)
    whole = files(url)
    altered = {
        RUN_CARD: whole[RUN_CARD].replace(b"true", b"false"),
        TOKENIZER_FILE: b"[]",
        SUMS: whole[SUMS].replace(b"a", b"!"),
    }[name]
    assert altered != whole[name]
    at(url).write(name, altered)
    if elsewhere:
        host("other", monkeypatch, tmp_path)
    # Without the seal nothing says that the chunks are right.
    assert run(url, card) == ([0, 1, 2] if elsewhere and name == SUMS else [])
    assert files(url) == whole


def test_what_was_altered_there_is_not_taken_over(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = make_card()
    run(url, card)
    at(url).write(RUN_CARD, at(url).read(RUN_CARD) + b" ")
    host("other", monkeypatch, tmp_path)
    store = WorkStore(url, card.fingerprint)
    with store.locked():
        store.adopt()
        assert not store.begun
    at(url).write(RUN_CARD, card.to_bytes())
    at(url).write(TOKENIZER_FILE, b"[]")
    with store.locked():
        store.adopt()
        assert store.begun
        assert not store.has_tokenizer


def test_a_chunk_of_a_run_that_was_replaced_meanwhile_is_removed(url: str) -> None:
    card = make_card()
    run(url, card)
    whole = files(url)
    at(url).write(chunk_name(7), b"put by the other after all was cleared")
    assert run(url, card) == []
    assert files(url) == whole


def test_damage_there_names_a_remedy_that_works(url: str) -> None:
    card = make_card()
    run(url, card)
    whole = files(url)
    at(url).write(CHUNKS[1], b"x" * len(whole[CHUNKS[1]]))
    run(url, card)  # size and recorded sha256 are as they were
    with pytest.raises(DamagedChunkError, match="remove it there and run `twophase predict`"):
        PredictionSet(url).reader(1)
    at(url).remove([CHUNKS[1]])
    assert run(url, card) == []
    assert files(url) == whole


def test_other_settings_are_refused_and_replaced_when_asked(url: str) -> None:
    first, second = make_card(), make_card(rows=3, model="other")
    run(url, first)
    with pytest.raises(FingerprintError, match=r"other settings \(differing: model\).*--overwrite"):
        run(url, second)
    assert PredictionSet(url).card == first
    run(url, second, range(1), overwrite=True)
    assert PredictionSet(url).card == second
    assert set(at(url).sizes()) == {RUN_CARD, TOKENIZER_FILE, SUMS, CHUNKS[0]}


def test_the_seal_goes_before_anything_else_is_replaced(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(url, make_card())
    events = record(monkeypatch)
    run(url, make_card(model="other"), overwrite=True)
    assert events[0] == f"-{SUMS}"
    assert events[len(WHOLE) - 1 : len(WHOLE) + 1] == [f"-{RUN_CARD}", f"+{RUN_CARD}"]
    assert [event for event in events if not event.startswith("-.partial/")][-1] == f"+{SUMS}"


def test_two_runs_that_begin_at_once_never_mix(url: str) -> None:
    cards = [make_card(), make_card(model="other")]
    stores = [WorkStore(url, card.fingerprint) for card in cards]
    for store, card in zip(stores, cards, strict=True):
        store.check_target(card.inputs, overwrite=False)  # both may begin
    stores[0].begin(cards[0])
    with pytest.raises(FingerprintError, match="holds predictions of other settings"):
        stores[1].begin(cards[1])
    # One that took the URL over while this one was making a chunk.
    stores[0].write(0, chunk_of(cards[0], 0), {})
    at(url).write(RUN_CARD, cards[1].to_bytes())
    with pytest.raises(FingerprintError, match="holds predictions of other settings"):
        stores[0].target.put(stores[0], 0)
    assert CHUNKS[0] not in at(url).sizes()


def test_other_versions_on_another_machine_do_not_mix_unless_allowed(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = make_card()
    WorkStore(url, card.fingerprint).begin(card)
    newer = RunCard.plan(inputs=card.inputs, rows=7, chunk_rows=3, versions={"torch": "2"})
    host("other", monkeypatch, tmp_path)
    store = WorkStore(url, card.fingerprint)
    with pytest.raises(FingerprintError, match=r"memory://.* other versions \(torch 1 → 2\)"):
        store.begin(newer)
    store.begin(newer, allow_mixed=True)
    assert store.card.versions == {"torch": "1"}


def test_what_is_no_prediction_set_is_left_alone(url: str) -> None:
    at(url).write("thesis.tex", b"years of work")
    card = make_card()
    with pytest.raises(PredictionSetError, match=r"holds thesis.tex, and no run.json"):
        run(url, card, overwrite=True)
    at(url).write(RUN_CARD, card.to_bytes())
    run(url, card, overwrite=True)
    assert at(url).read("thesis.tex") == b"years of work"


def test_parts_and_a_target_at_urls_are_merged(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = make_card()
    published(tmp_path / "local")
    local = tmp_path / "local/predictions"
    for number in range(3):
        host(f"host{number}", monkeypatch, tmp_path)
        run(f"{url}/part{number}", card, range(number, number + 1))
    host("merger", monkeypatch, tmp_path)
    merge(
        [f"{url}/part0", tmp_path / "host1" / card.fingerprint, f"{url}/part2"], f"{url}/whole",
        telemetry=tmp_path / "telemetry.csv",
    )  # fmt: skip
    assert files(f"{url}/whole") == {name: (local / name).read_bytes() for name in WHOLE}
    lines = (tmp_path / "telemetry.csv").read_text().splitlines()
    assert ["1.0" in line for line in lines] == [False, True, True, True]


def test_a_note_that_cannot_be_read_costs_its_chunk_alone(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = make_card()
    run(url, card, range(2))
    note = ".partial/telemetry-00000.json"
    assert json.loads(at(url).read(note))["elapsed_s"] == 1.0
    at(url).write(note, b"{")
    shutil.rmtree(tmp_path / "stores")
    assert run(url, card) == [0, 2]
    assert faults(url) == []
