"""Columns of a chunk that some metrics read beside the texts: what ``forced`` wrote, for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from pipeline.errors import ConfigError, DamagedChunkError
from pipeline.score.buffers import one_array, to_numpy
from pipeline.score.metrics import NamedMetric
from pipeline.score.metrics.base import ColumnMetric, Floats, Metric
from pipeline.store.card import RunCard

# Which engine of phase one writes a column.
_WRITTEN_BY = {"nll": "forced", "label_tokens": "forced", "correct_tokens": "forced"}


def statistics_of(
    metric: Metric,
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    columns: Mapping[str, Floats],
) -> Floats:
    """``metric.statistics``, with the columns for a metric that needs some."""
    if isinstance(metric, ColumnMetric):
        return metric.statistics(predictions, references, columns)
    return metric.statistics(predictions, references)


def read_columns(metrics: Sequence[NamedMetric], block: pa.Table, where: str) -> dict[str, Floats]:
    """(rows,) values of the columns that ``metrics`` need, from rows of the chunk at ``where``.

    Raises:
        DamagedChunkError: a value is null, infinite or not a number.
    """
    return {name: _values(block, name, where) for name in _needed(metrics)}


def require_columns(metrics: Sequence[NamedMetric], card: RunCard) -> None:
    """Check that the set has the columns that ``metrics`` need.

    Raises:
        ConfigError: names the metric, the columns and the engine that writes them.
    """
    for named in metrics:
        needed = named.metric.needs if isinstance(named.metric, ColumnMetric) else ()
        missing = [name for name in needed if name not in card.optional]
        if missing:
            engines = sorted({_WRITTEN_BY[name] for name in missing})
            raise ConfigError(
                f"score.metrics: {named.label} needs the column {' and '.join(missing)}, which "
                f"this set does not have; predict with predict.engine: {' or '.join(engines)}, or "
                "remove the metric"
            )


def _needed(metrics: Sequence[NamedMetric]) -> list[str]:
    needed = (named.metric.needs for named in metrics if isinstance(named.metric, ColumnMetric))
    return sorted({name for names in needed for name in names})


def _values(block: pa.Table, name: str, where: str) -> Floats:
    column = one_array(block.column(name))
    bad = column.is_null().to_pylist()
    if column.null_count == 0:
        values = to_numpy(column).astype(np.float64)
        if np.isfinite(values).all():
            return values
        bad = (~np.isfinite(values)).tolist()
    row = block.column("row")[bad.index(True)].as_py()
    raise DamagedChunkError(
        f"{where}, row {row}: {name} is null, infinite or not a number (a model in float16 may "
        "overflow); predict again in another predict.dtype"
    )
