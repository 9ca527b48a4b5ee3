"""One evaluation on rank 0: which of the gathered rows are rows of the data set."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pipeline.training.evaluation import Evaluation


class _Spool:
    def __init__(self) -> None:
        self.rows = 0

    def add(self, columns: dict[str, int]) -> None:
        assert columns["first"] == self.rows
        self.rows += columns["count"]


class _Columns:
    def make(self, outputs: Any, labels: Any, rows: int) -> dict[str, int]:
        return {"count": rows}


class _Data:
    batch_rows = 4

    def __init__(self, length: int | None) -> None:
        self.length = length

    def columns(self, first: int, rows: int) -> dict[str, int]:
        return {"first": first}


@pytest.mark.parametrize(
    ("length", "last_rows", "expected"),
    [(7, None, 7), (7, 3, 7), (None, 3, 7), (None, None, 8), (4, None, 4)],
)
def test_rows_that_fill_up_the_last_batch_are_none_of_the_data_set(
    length: int | None, last_rows: int | None, expected: int
) -> None:
    spool: Any = _Spool()
    columns: Any = _Columns()
    data: Any = _Data(length)
    evaluation = Evaluation(spool, columns, data, "eval")
    evaluation.add((), torch.zeros(4, 2), None)
    evaluation.add((), torch.zeros(4, 2), last_rows)
    assert spool.rows == expected
