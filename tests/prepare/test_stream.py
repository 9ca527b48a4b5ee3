"""Data sets that come as a stream: without a length, larger than what is wanted, of late types."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, IterableDataset
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.config import parse_section
from pipeline.errors import DataError
from pipeline.prepare import hub
from pipeline.prepare.config import PrepareConfig
from pipeline.prepare.prepare import PreparedData, prepare
from pipeline.prepare.sample import Sampler, sample
from tests.prepare.files import pair, rows, write_jsonl
from tests.prepare.files import run as run_local


def endless() -> Iterator[dict[str, Any]]:
    number = 0
    while True:
        yield pair(number)
        number += 1


def of(data: list[Any]) -> Callable[[], Iterator[Any]]:
    return lambda: iter(data)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., PreparedData]:
    """Prepare from a generator of rows, as if the hub had sent them."""

    def prepare_stream(
        generate: Callable[[], Iterator[Any]] | IterableDataset, **keys: Any
    ) -> PreparedData:
        def open_stream(dataset: str, name: Any, split: Any, scratch: Path) -> Any:
            stream = generate
            if not isinstance(stream, IterableDataset):
                stream = IterableDataset.from_generator(generate)
            return hub.stream_of(stream, f"the hub's {dataset}", scratch, {"dataset": dataset})

        monkeypatch.setattr(hub, "open_stream", open_stream)
        keys = {"limit": None, "streaming": True, "dataset": "owner/data"} | keys
        config = parse_section(keys, "prepare", PrepareConfig)
        return prepare(config, tmp_path / "examples.parquet", tmp_path / "source")

    return prepare_stream


@pytest.mark.parametrize("limit", [1, 999, 1000, 1001, 2500])
def test_the_first_rows_of_an_endless_stream(
    limit: int, run: Callable[..., PreparedData], tmp_path: Path
) -> None:
    result = run(endless, limit=limit)
    assert result.tally.rows == limit
    assert [row["id"] for row in rows(tmp_path)] == [f"id-{number}" for number in range(limit)]
    assert sorted(os.listdir(tmp_path)) == ["examples.parquet", "source"]  # nothing waits


@pytest.mark.parametrize("total", [1, 1000, 2345])
def test_no_limit_is_all_of_it_to_its_end(
    total: int, run: Callable[..., PreparedData], tmp_path: Path
) -> None:
    data = [pair(number) for number in range(total)]
    assert run(of(data)).tally.rows == total
    assert [row["row"] for row in rows(tmp_path)] == list(range(total))
    assert rows(tmp_path)[-1]["document"] == f"document {total - 1}"
    assert run(of(data), limit=5000, seed=3).tally.rows == total


@pytest.mark.parametrize("identifier", ["id", None])
def test_a_sample_is_the_one_of_the_data_set_that_is_not_streamed(
    identifier: str | None, run: Callable[..., PreparedData], tmp_path: Path
) -> None:
    data = [pair(number) for number in range(3456)]
    run(of(data), limit=200, seed=7, id=identifier)
    streamed = rows(tmp_path)
    path = write_jsonl(tmp_path / "d.jsonl", data)
    run_local(tmp_path, dataset=path, limit=200, seed=7, id=identifier)
    assert streamed == rows(tmp_path)
    assert len(streamed) == 200


@settings(deadline=None)
@given(st.integers(0, 300), st.integers(1, 60), st.integers(-3, 3))
def test_a_sampler_keeps_the_sample(total: int, limit: int, seed: int) -> None:
    sampler = Sampler(limit, seed)
    offered = [row for row in range(total) if sampler.offer(row)]
    assert sampler.rows() == sample(range(total), limit, seed)
    assert set(sampler.rows()) <= set(offered)  # so they have been kept
    assert len(sampler._heap) <= limit


def test_what_waits_on_the_disk_grows_with_the_limit_not_with_the_stream() -> None:
    sampler = Sampler(100, 0)
    kept = sum(sampler.offer(row) for row in range(100_000))
    assert 100 <= kept < 100 * (1 + 6.9) * 1.3  # 1 + ln(1000)


def test_a_column_that_is_null_at_first_is_text_later(
    run: Callable[..., PreparedData], tmp_path: Path
) -> None:
    data = [pair(number, topic=None if number < 1500 else "late") for number in range(2100)]
    run(of(data), keep=["topic"])
    assert pq.read_schema(tmp_path / "examples.parquet").field("topic").type == pa.string()
    topics = [row["topic"] for row in rows(tmp_path)]
    assert topics == [None] * 1500 + ["late"] * 600


def test_integers_may_become_fractions_but_not_text(
    run: Callable[..., PreparedData], tmp_path: Path
) -> None:
    data = [pair(number, n=number if number < 1500 else 0.5) for number in range(2100)]
    run(of(data), keep=["n"])
    assert rows(tmp_path)[3]["n"] == 3.0
    data = [pair(number, n=number if number < 1500 else "x") for number in range(2100)]
    with pytest.raises(DataError, match="the hub's owner/data"):
        run(of(data), keep=["n"])


def test_types_that_the_data_set_declares_are_kept(
    run: Callable[..., PreparedData], tmp_path: Path
) -> None:
    columns: dict[str, Any] = {
        name: [row[name] for row in map(pair, range(2500))] for name in pair(0)
    }
    table = pa.table(columns | {"n": pa.array(range(2500), pa.int16())})
    stream = Dataset(table).to_iterable_dataset(num_shards=3)
    assert stream.features is not None
    run(stream, keep=["n"], limit=40, seed=2)
    assert pq.read_schema(tmp_path / "examples.parquet").field("n").type == pa.int16()
    assert [row["n"] for row in rows(tmp_path)] == sample(range(2500), 40, 2)


@pytest.mark.parametrize("keys", [{}, {"limit": 5}, {"limit": 5, "seed": 1}])
def test_an_empty_stream(keys: dict[str, int], run: Callable[..., PreparedData]) -> None:
    with pytest.raises(DataError, match="the hub's owner/data has no rows"):
        run(of([]), **keys)


def test_a_column_that_is_not_there(run: Callable[..., PreparedData]) -> None:
    with pytest.raises(DataError, match="has no column 'documnt'.*did you mean document"):
        run(endless, input="documnt", limit=3)


def test_rows_are_named_by_their_number_in_the_stream(run: Callable[..., PreparedData]) -> None:
    data = [pair(number) for number in range(3000)]
    row = sample(range(3000), 50, 1)[30]
    data[row]["summary"] = None
    with pytest.raises(DataError, match=rf"row {row} \(id 'id-{row}'\): the reference .* is null"):
        run(of(data), limit=50, seed=1)


def test_a_stream_that_breaks_off(run: Callable[..., PreparedData], tmp_path: Path) -> None:
    def breaking() -> Iterator[Any]:
        for number in range(1500):
            yield pair(number)
        raise ConnectionResetError("Connection reset by peer")

    message = r"owner/data broke off after row 1000 \(Connection reset by peer\); prepare again"
    with pytest.raises(DataError, match=message):
        run(breaking)
    assert sorted(os.listdir(tmp_path)) == []
    assert run(breaking, limit=900).tally.rows == 900


def test_what_is_on_this_machine_is_not_streamed(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [pair(0), pair(1)])
    assert run_local(tmp_path, dataset=path, streaming=True).tally.rows == 2
    assert (tmp_path / "source").is_symlink()
