"""Metrics of the columns that phase one's engine ``forced`` wrote, which are the statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.score.metrics.base import ColumnMetric, Floats, check_rows


class ForcedMetric(ColumnMetric):
    """The statistics are the columns of ``needs``, in that order."""

    def statistics(
        self,
        predictions: Sequence[str],
        references: Sequence[Sequence[str]],
        columns: Mapping[str, Floats] | None = None,
    ) -> Floats:
        check_rows(predictions, references)
        for name in self.needs:
            if columns is None or name not in columns:
                raise ValueError(f"the column {name} is missing; read it with the rows")
            if len(columns[name]) != len(predictions):
                raise ValueError(
                    f"{len(predictions)} predictions but {len(columns[name])} values of {name}"
                )
        assert columns is not None
        return np.column_stack([columns[name] for name in self.needs]).astype(np.float64)
