"""Some rows of a data set, the same ones each time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch


def sample_rows(dataset: Any, rows: int | None, seed: int) -> tuple[Any, list[int] | None]:
    """``rows`` of ``dataset`` in its order, and their numbers; all of it and None where it is less.

    Of a stream, which has no length, the first rows are taken.
    """
    from datasets import Dataset, IterableDataset

    if rows is None:
        return dataset, None
    if isinstance(dataset, IterableDataset):
        return dataset.take(rows), None
    if isinstance(dataset, torch.utils.data.IterableDataset):
        return _First(dataset, rows), None
    if len(dataset) <= rows:
        return dataset, None
    numbers = sorted(random.Random(seed).sample(range(len(dataset)), rows))
    if isinstance(dataset, Dataset):
        return dataset.select(numbers), numbers
    return torch.utils.data.Subset(dataset, numbers), numbers


class _First(torch.utils.data.IterableDataset[Any]):
    """The first rows of a stream."""

    def __init__(self, dataset: Any, rows: int) -> None:
        self._dataset = dataset
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return islice(iter(self._dataset), self._rows)
