"""The cache of statistics: what is computed again and what is not, and that it is never wrong."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ScoresError
from pipeline.score import cache as cache_module
from pipeline.score import keys, sources, statistics
from pipeline.score import run as run_module
from pipeline.score import settings as settings_module
from pipeline.score.cache import Cache
from pipeline.score.config import ScoreConfig
from pipeline.score.keys import make_keys
from pipeline.score.metrics.bleu import Bleu, BleuOptions
from pipeline.score.metrics.rouge import Rouge, RougeOptions
from pipeline.score.normalize import RegexStep
from pipeline.score.run import score
from pipeline.store.card import DecodeOptions, RunCard
from pipeline.store.chunk import chunk_name
from pipeline.store.place import Folder
from tests.score.sets import PREDICTIONS, REFERENCES, write_set
from tests.score.strategies import rows

KEEP = {"topic": ["a", "b", "a", None, "b"]}
SCHEMA = pa.schema([pa.field("x", pa.int64())])


class Calls:
    """What was computed: rows per metric, and chunks decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: Counter[str] = Counter()
        for kind in (Bleu, Rouge):
            self._count(monkeypatch, kind)
        read_texts = statistics.read_texts

        def counted(block: pa.Table, *arguments: Any) -> Any:
            self.seen["texts"] += len(block)
            return read_texts(block, *arguments)

        monkeypatch.setattr(statistics, "read_texts", counted)

    def _count(self, monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
        original = kind.statistics

        def counted(metric: Any, predictions: Any, references: Any) -> Any:
            self.seen[kind.__name__.lower()] += len(predictions)
            return original(metric, predictions, references)

        monkeypatch.setattr(kind, "statistics", counted)

    def take(self) -> dict[str, int]:
        """What was computed since the last call."""
        seen, self.seen = dict(self.seen), Counter()
        return seen


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_set(tmp_path / "set", keep=KEEP)
    return tmp_path / "set"


def run(folder: Path, out: str = "out", cache: bool = True, **config: Any) -> dict[str, Any]:
    target = folder.parent / out
    settings = ScoreConfig(**{"replicates": 20, **config})
    return score(
        folder, target / "scores", target / "metrics.json", settings,
        plots=target / "plots", cache=folder.parent / "cache" if cache else None,
    )  # fmt: skip


def results(folder: Path, out: str) -> dict[str, bytes]:
    target = folder.parent / out
    return {
        str(path.relative_to(target)): path.read_bytes()
        for path in sorted(target.rglob("*"))
        if path.is_file()
    }


def entries(folder: Path) -> list[Path]:
    return sorted((folder.parent / "cache").glob("*/*"))


ALL = {"texts": 5, "rouge": 5, "bleu": 5}


def test_a_second_run_computes_nothing_and_says_the_same(folder: Path, calls: Calls) -> None:
    run(folder, "first")
    assert calls.take() == ALL
    run(folder, "second")
    assert calls.take() == {}
    run(folder, "without", cache=False)
    assert calls.take() == ALL
    assert results(folder, "first") == results(folder, "second") == results(folder, "without")
    assert len(results(folder, "first")) > 5


@settings(deadline=None, max_examples=10)
@given(examples=rows(max_rows=30).filter(bool), text=st.booleans(), chunk_rows=st.integers(1, 9))
def test_the_same_bytes_with_and_without(
    tmp_path_factory: pytest.TempPathFactory,
    examples: list[tuple[str, list[str]]],
    text: bool,
    chunk_rows: int,
) -> None:
    folder = tmp_path_factory.mktemp("cached") / "set"
    write_set(
        folder, [r[0] for r in examples], [r[1] for r in examples], text=text, chunk_rows=chunk_rows
    )
    for out, cache in (("none", False), ("fill", True), ("use", True)):
        run(folder, out, cache=cache)
    assert results(folder, "none") == results(folder, "fill") == results(folder, "use")


def test_a_new_metric_computes_only_itself(folder: Path, calls: Calls) -> None:
    run(folder, metrics=("bleu",))
    assert calls.take() == {"texts": 5, "bleu": 5}
    run(folder, metrics=("rouge", "bleu"))
    assert calls.take() == {"texts": 5, "rouge": 5}
    run(folder, metrics=({"bleu": {"tokenize": "char"}}, "bleu", "rouge"))
    assert calls.take() == {"texts": 5, "bleu": 5}
    run(folder, metrics=("rouge", {"bleu": {"tokenize": "char"}}))
    assert calls.take() == {}


def test_new_chunks_compute_only_themselves(folder: Path, calls: Calls) -> None:
    (folder / chunk_name(2)).rename(folder.parent / "later")
    target = folder.parent / "part"
    config = ScoreConfig(replicates=20)
    where = (folder, target, folder.parent / "m.json", config)
    score(*where, allow_partial=True, cache=folder.parent / "cache")
    assert calls.take() == {"texts": 4, "rouge": 4, "bleu": 4}
    (folder.parent / "later").rename(folder / chunk_name(2))
    run(folder)
    assert calls.take() == {"texts": 1, "rouge": 1, "bleu": 1}


@pytest.mark.parametrize(
    "changed",
    [
        {"confidence": 0.5}, {"confidence": 0.0}, {"replicates": 30}, {"seed": 1},
        {"by": ("topic",)}, {"n_jobs": 2, "backend": "threading"},
    ],
)  # fmt: skip
def test_intervals_and_groups_compute_no_statistics(
    folder: Path, calls: Calls, changed: dict[str, Any]
) -> None:
    run(folder)
    calls.take()
    run(folder, "changed", **changed)
    assert calls.take() == {}
    run(folder, "fresh", cache=False, **changed)
    assert results(folder, "changed") == results(folder, "fresh")


def test_counts_are_remembered(tmp_path: Path, calls: Calls) -> None:
    predictions = [[5, 99_999], [99_998], []]
    write_set(tmp_path / "set", predictions, [["x", ""], [None], ["y"]], chunk_rows=2)
    first = run(tmp_path / "set")
    calls.take()
    assert run(tmp_path / "set") == first
    assert calls.take() == {}
    assert first["counts"] == {
        "empty_predictions": 2,
        "empty_references": 1,
        "dropped_references": 1,
        "null_references": 1,
        "truncated": 1,
        "finish_reasons": {"eos": 3},
        "out_of_vocabulary_ids": 2,
    }


def test_the_same_chunk_elsewhere_is_known(folder: Path, calls: Calls) -> None:
    run(folder)
    calls.take()
    copy = folder.parent / "copy"
    folder.rename(copy)
    run(copy, "copied")
    assert calls.take() == {}


def test_an_unsealed_chunk_that_changed_is_computed(tmp_path: Path, calls: Calls) -> None:
    write_set(tmp_path / "set", seal=False)
    write_set(tmp_path / "new/set", ["new", *PREDICTIONS[1:]], REFERENCES, seal=False)
    run(tmp_path / "set")
    calls.take()
    (tmp_path / "new/set" / chunk_name(0)).replace(tmp_path / "set" / chunk_name(0))
    changed = run(tmp_path / "set")
    assert calls.take() == {"texts": 2, "rouge": 2, "bleu": 2}
    assert changed == run(tmp_path / "set", "fresh", cache=False)


# What a key depends on.
CARD = RunCard.plan(inputs={}, rows=1, chunk_rows=1, versions={})


def key(metric: Any, card: RunCard = CARD, tokenizer: str | None = "t") -> tuple[str, str | None]:
    file = None if tokenizer is None else keys.TokenizerFile(Folder(Path()), tokenizer)
    made = make_keys(Path("cache"), (metric,), card, file)
    assert made is not None
    return made.counts, made.metrics[0]


def test_every_option_is_in_the_key() -> None:
    for options in (
        {"tokenize": "char"}, {"lowercase": True}, {"max_ngram_order": 3},
        {"smooth_method": "none"}, {"smooth_value": 0.5}, {"effective_order": True},
    ):  # fmt: skip
        assert key(Bleu(BleuOptions(**options))) != key(Bleu())  # type: ignore[arg-type]
    for changed in ({"types": ("rouge1",)}, {"stemmer": True}):
        assert key(Rouge(RougeOptions(**changed))) != key(Rouge())  # type: ignore[arg-type]
    assert key(Bleu()) != key(Rouge())
    assert key(Bleu()) == key(Bleu(BleuOptions()))


def test_how_ids_are_decoded_is_in_the_key() -> None:
    plain = key(Bleu())
    decode = DecodeOptions(skip_special_tokens=False)
    assert key(Bleu(), msgspec.structs.replace(CARD, decode=decode))[0] != plain[0]
    assert key(Bleu(), tokenizer="u")[0] != plain[0]
    text = msgspec.structs.replace(CARD, prediction="text")
    assert key(Bleu(), text, None)[1] != plain[1]
    other = RunCard.plan(inputs={"model": "other"}, rows=7, chunk_rows=2, versions={"torch": "1"})
    assert key(Bleu(), other) == plain


def test_normalisation_is_in_the_key() -> None:
    keys_of = [
        make_keys(Path("cache"), (Bleu(),), CARD, None, steps)
        for steps in ((), ("strip",), ("lowercase", "strip"), (RegexStep(regex=("a", "b")),))
    ]
    assert len({(made and (made.counts, made.metrics, made.references)) for made in keys_of}) == 4


def test_versions_and_sources_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = key(Bleu())
    hashed = sources.hash_sources
    monkeypatch.setattr(
        keys, "hash_sources",
        lambda *modules, **how: "edited" if "bleu" in modules[0] else hashed(*modules, **how),
    )  # fmt: skip
    edited = key(Bleu())
    assert edited[0] == plain[0]
    assert edited[1] != plain[1]
    monkeypatch.undo()
    monkeypatch.setattr(Bleu, "signature", lambda self, n=None: "version:0.0.0")
    assert key(Bleu())[1] != plain[1]
    monkeypatch.undo()
    assert key(Bleu()) == plain
    monkeypatch.setattr(keys, "hash_sources", lambda *modules, **how: None)
    assert make_keys(Path("cache"), (Bleu(),), CARD, None) is None


OWN = """
import numpy as np
from pipeline.score.metrics.base import Column, Metric
from pipeline.config import Config

class Options(Config, frozen=True):
    how: str = "helper:weight"

class Mine(Metric):
    options_type, scale = Options, 1.0
    columns, headline = (Column("mine.sum", False), Column("mine.rows", True)), ("mine",)

    def __init__(self, options=None):
        self.options = options or Options()

    def statistics(self, predictions, references):
        return np.array([[FACTOR * len(text), 1] for text in predictions]).reshape(-1, 2)

    def scores(self, totals, per_row=False):
        return {"mine": totals[0] / totals[1] if totals[1] else None}

    def signature(self, references_per_row=None):
        return "mine"
"""


def test_a_metric_of_the_persons_own_is_followed_to_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sources, "_BEGAN_NS", 2**63)
    (tmp_path / "cached_metric.py").write_text("FACTOR = 0.5\n" + OWN)
    (tmp_path / "helper.py").write_text("def weight(): return 1\n")
    importlib.invalidate_caches()
    module = importlib.import_module("cached_metric")
    before = key(module.Mine())[1]
    assert before is not None
    (tmp_path / "cached_metric.py").write_text("FACTOR = 0.25\n" + OWN)
    assert key(module.Mine())[1] != before
    (tmp_path / "cached_metric.py").write_text("FACTOR = 0.5\n" + OWN)
    assert key(module.Mine())[1] == before
    # what an option names is a source, too
    (tmp_path / "helper.py").write_text("def weight(): return 2\n")
    assert key(module.Mine())[1] != before
    monkeypatch.delitem(sys.modules, "cached_metric")


def test_a_metric_without_a_source_is_not_cached(folder: Path, calls: Calls) -> None:
    kept = settings_module.make_keys

    def without_rouge(*arguments: Any) -> Any:
        made = kept(*arguments)
        assert made is not None
        return dataclasses.replace(made, metrics=(None, made.metrics[1]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings_module, "make_keys", without_rouge)
        run(folder)
        calls.take()
        run(folder, "again")
        assert calls.take() == {"texts": 5, "rouge": 5}
    assert results(folder, "out") == results(folder, "again")


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "swap", "garbage"])
def test_a_damaged_entry_is_a_miss(folder: Path, calls: Calls, damage: str) -> None:
    run(folder, "first")
    calls.take()
    paths = [path for path in entries(folder) if path.stat().st_size > 2000]
    for path in paths:
        content = bytearray(path.read_bytes())
        if damage == "flip":
            content[len(content) // 3] ^= 1
        elif damage == "cut":
            content = content[:-7]
        elif damage == "swap":
            content = bytearray(next(p for p in paths if p != path).read_bytes())
        else:
            content = bytearray(b"no parquet" if damage == "garbage" else b"")
        path.write_bytes(content)
    run(folder, "second")
    assert calls.take().get("rouge", 0) > 0
    assert results(folder, "first") == results(folder, "second")
    run(folder, "third")
    assert calls.take() == {}


@settings(deadline=None, max_examples=60)
@given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_no_flipped_byte_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, place: float, flip: int
) -> None:
    cache = Cache(tmp_path_factory.mktemp("flip"))
    writer = cache.writer("c" * 64, "k" * 64, SCHEMA)
    writer.write(pa.table({"x": [1, 2, 3]}, schema=SCHEMA))
    writer.commit()
    assert cache.find("c" * 64, "k" * 64, SCHEMA) is not None
    (path,) = cache.folder.glob("*/*")
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= flip
    path.write_bytes(content)
    assert cache.find("c" * 64, "k" * 64, SCHEMA) is None


def test_an_entry_of_other_columns_or_rows_is_a_miss(folder: Path, calls: Calls) -> None:
    cache = Cache(folder.parent / "cache")
    assert cache.find("c", "k", SCHEMA) is None
    run(folder)
    calls.take()
    # rightly named, of the right columns, and of too few rows
    for path in entries(folder):
        table = pq.ParquetFile(path).read()
        if table.num_columns >= 10 and len(table) == 2:
            pq.write_table(table.slice(1), path)
            digest = cache_module.file_sha256(path)[:16]
            path.rename(path.with_name(f"{path.name[:32]}-{digest}.parquet"))
    run(folder)
    assert calls.take() == {"texts": 4, "rouge": 4, "bleu": 4}


def test_a_failed_chunk_leaves_no_entry(tmp_path: Path) -> None:
    write_set(tmp_path / "set", [[1], [-1]], [["x"]] * 2, chunk_rows=2)
    with pytest.raises(Exception, match="negative"):
        run(tmp_path / "set")
    assert entries(tmp_path / "set") == []


def test_what_was_used_longest_ago_is_pruned(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    for number in range(4):
        writer = cache.writer(f"{number}" * 64, "k" * 64, SCHEMA)
        writer.write(pa.table({"x": [number]}, schema=SCHEMA))
        writer.commit()
        (path,) = cache.folder.glob(f"{number}*/*")
        os.utime(path, (1000 + number, 1000 + number))
    size = path.stat().st_size
    started = time.time()
    assert cache.find("0" * 64, "k" * 64, SCHEMA) is not None  # used by this run
    cache.prune(started - 1, limit_bytes=3 * size)
    assert sorted(path.parent.name[0] for path in cache.folder.glob("*/*")) == ["0", "2", "3"]
    assert not list(cache.folder.glob("1*"))
    cache.prune(started - 1, limit_bytes=0)
    assert [path.parent.name[0] for path in cache.folder.glob("*/*")] == ["0"]


def test_what_a_killed_process_left_is_pruned_when_it_is_old(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    cache.writer("c" * 64, "k" * 64, SCHEMA)
    cache.prune(time.time())
    (left,) = cache.folder.glob("*/*")
    os.utime(left, (1000, 1000))
    cache.prune(time.time())
    assert list(cache.folder.glob("*")) == []


def test_a_run_prunes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(folder, metrics=("bleu",))
    for path in entries(folder):
        os.utime(path, (1000, 1000))
    monkeypatch.setattr(Cache.prune, "__defaults__", (0,))
    run(folder, metrics=("rouge",))
    kept = len(entries(folder))
    run(folder, metrics=("rouge",))
    assert len(entries(folder)) == kept == 9  # rouge, references and counts, of three chunks


def test_a_folder_pruned_by_another_process_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    opened = pq.ParquetWriter
    times = []

    def pruned(path: Path, *arguments: Any, **how: Any) -> Any:
        times.append(path)
        if len(times) == 1:
            path.parent.rmdir()
        return opened(path, *arguments, **how)

    monkeypatch.setattr(cache_module.pq, "ParquetWriter", pruned)
    writer = cache.writer("c" * 64, "k" * 64, SCHEMA)
    writer.write(pa.table({"x": [1]}, schema=SCHEMA))
    writer.commit()
    assert cache.find("c" * 64, "k" * 64, SCHEMA) is not None
    assert len(times) == 2


def test_workers_share_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "CALL_ROWS", 50)
    write_set(tmp_path / "set", PREDICTIONS * 60, REFERENCES * 60, chunk_rows=25)
    where = (tmp_path / "set", tmp_path / "scores", tmp_path / "metrics.json")
    config = ScoreConfig(replicates=20, n_jobs=2)
    found = []
    for cache in (tmp_path / "cache", tmp_path / "cache", None):
        score(*where, config, cache=cache, worker_rows=0)
        found.append((tmp_path / "scores/summary.json").read_bytes())
    assert len(set(found)) == 1
    assert len(entries(tmp_path / "set")) == 12 * 4


def test_a_cache_that_cannot_be_written_says_what_to_do(folder: Path) -> None:
    (folder.parent / "cache").write_text("a file")
    with pytest.raises(ScoresError, match=r"the cache .* cannot be written: .*--no-cache"):
        run(folder)
    assert json.loads((folder / "run.json").read_text())
