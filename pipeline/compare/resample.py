"""The scores of one set over the joined rows: as a whole, of each replicate, and of each row.

The replicates are those of the intervals (``score.interval``): a row has the same weight in every
set, since the weight depends on the seed and the baseline's row number alone. That is what makes
the comparison paired. Sums are exact, so that chunks and their order change no bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.compare.agreement import Compared
from pipeline.compare.scored import Scored
from pipeline.errors import ScoresError
from pipeline.score.interval import (
    BLOCK_ROWS,
    Sums,
    replicate_scores,
    replicate_sums,
    weights,
)
from pipeline.score.metrics.base import Floats, Metric
from pipeline.score.ngrams import Integers


class Resampled(NamedTuple):
    """One headline score of one set.

    Attributes:
        value: of the set; None where undefined.
        replicates: (replicates,) of each replicate; NaN where undefined.
        examples: (rows,) of each row; NaN where undefined.
    """

    value: float | None
    replicates: Floats
    examples: Floats


def resample(
    scored: Scored,
    place: Integers,
    rows: Integers,
    metrics: Sequence[Compared],
    seed: int,
    replicates: int,
) -> dict[str, Resampled]:
    """The wanted scores of ``scored``, by their names in the results.

    Args:
        scored: the set.
        place: where its rows stand among ``rows``, as ``join`` has it.
        rows: (rows,) row numbers in the baseline, ascending.
        metrics: what to compute.
        seed: of the bootstrap.
        replicates: of the bootstrap.

    Raises:
        ScoresError: the statistics do not give the score in ``summary.json``.
    """
    columns = [column for each in metrics for column in each.named.columns]
    scores = [each.named.rename(score) for each in metrics for score in each.scores]
    # Each file is opened once.
    names = [column.name for column in columns] + scores
    values = scored.columns(names, place, len(rows))
    examples = dict(zip(scores, values[:, len(columns) :].T.copy(), strict=True))
    statistics = values[:, : len(columns)]
    integer = np.array([column.integer for column in columns], np.bool_)
    sums = _replicate_sums(statistics, integer, rows, seed, replicates)
    found = {}
    start = 0
    for each in metrics:
        metric = each.named.metric
        these = slice(start, start + len(metric.columns))
        start = these.stop
        totals = metric.scores(_totals(metric, statistics[:, these]))
        replicated = replicate_scores(metric, sums[:, these])
        for score in each.scores:
            name = each.named.rename(score)
            drawn = np.array([scores[score] for scores in replicated], np.float64)
            found[name] = Resampled(totals[score], drawn, examples[name])
            if len(rows) == len(scored.rows):
                _require_unaltered(scored, each, name, totals[score])
    return found


def _totals(metric: Metric, statistics: Floats) -> list[int | float]:
    return [
        int(values.astype(np.int64).sum()) if column.integer else math.fsum(values.tolist())
        for column, values in zip(metric.columns, statistics.T, strict=True)
    ]


def _replicate_sums(
    statistics: Floats, integer: NDArray[np.bool_], rows: Integers, seed: int, replicates: int
) -> Sums:
    """(replicates, columns) weighted sums, in units of ``interval.column_units``."""
    sums = np.zeros((replicates, len(integer)), np.int64)
    blocks, starts = np.unique(rows // BLOCK_ROWS, return_index=True)
    bounds = [*starts.tolist(), len(rows)]
    for number, block in enumerate(blocks.tolist()):
        these = slice(bounds[number], bounds[number + 1])
        drawn = weights(seed, block * BLOCK_ROWS, BLOCK_ROWS, replicates)
        # Rows may be missing in between.
        sums += replicate_sums(statistics[these], integer, drawn[rows[these] % BLOCK_ROWS])
    return sums


def _require_unaltered(scored: Scored, compared: Compared, name: str, value: float | None) -> None:
    entry = scored.summary["metrics"][compared.named.label]["scores"][name]
    written = None if entry is None else entry["value"]
    if value != written:
        raise ScoresError(
            f"{scored.name}: the statistics give {name} {value}, but summary.json says {written}: "
            "files were altered, or written by other versions of the libraries; score again with "
            "`twophase score`"
        )
