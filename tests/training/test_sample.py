"""The rows that are taken of a training set: the same ones each time, in its order."""

from __future__ import annotations

from typing import Any

import torch
from datasets import Dataset, IterableDataset

from pipeline.training.sample import sample_rows
from tests.training.gloo import Stream

ROWS = [{"number": number} for number in range(20)]


def numbers(dataset: Any) -> list[int]:
    return [row["number"] for row in dataset]


def test_rows_of_a_data_set_and_of_a_list() -> None:
    table, places = sample_rows(Dataset.from_list(ROWS), 5, seed=0)
    assert isinstance(table, Dataset)
    assert places == sorted(places or ())
    assert numbers(table) == places
    assert numbers(sample_rows(ROWS, 5, seed=0)[0]) == places
    assert sample_rows(ROWS, 5, seed=1)[1] != places


def test_all_of_it_where_it_is_less() -> None:
    for rows in (None, 20, 30):
        assert sample_rows(ROWS, rows, seed=0) == (ROWS, None)


def test_the_first_rows_of_a_stream() -> None:
    def generate() -> Any:
        yield from ROWS

    for stream in (Stream(ROWS), IterableDataset.from_generator(generate)):
        taken, places = sample_rows(stream, 3, seed=0)
        assert isinstance(taken, torch.utils.data.IterableDataset)
        assert places is None
        assert numbers(taken) == numbers(taken) == [0, 1, 2]
