"""Columns that phase one's engine ``forced`` wrote, as a matrix of statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.score.metrics.base import Floats, check_rows


def stack_columns(
    names: Sequence[str],
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    columns: Mapping[str, Floats] | None,
) -> Floats:
    """(rows, names) matrix of the columns ``names``.

    Raises:
        ValueError: one of them is missing or has another length, or the rows are not as in
            ``Metric.statistics``.
    """
    check_rows(predictions, references)
    for name in names:
        if columns is None or name not in columns:
            raise ValueError(f"the column {name} is missing; read it with the rows")
        if len(columns[name]) != len(predictions):
            raise ValueError(
                f"{len(predictions)} predictions but {len(columns[name])} values of {name}"
            )
    assert columns is not None
    return np.column_stack([columns[name] for name in names]).astype(np.float64)
