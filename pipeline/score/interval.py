"""Confidence intervals: a seeded Poisson bootstrap over the statistics.

A replicate gives each row a weight, drawn from a Poisson distribution with mean 1, in place of
drawing rows with replacement (Hanley & MacGibbon 2006; Chamandy et al. 2012): rows need not be
known together, so replicates are sums like the scores and merge like them. The interval is the
percentile interval of the replicates' scores (Efron 1979); for BLEU this is Koehn's (2004).

The same bits come out for any chunks, workers and order, because

* the weight of a row in a replicate depends on the seed and the row's number alone;
* statistics are whole numbers here (float columns rounded to multiples of 2⁻³⁰), and a block's
  matrix product is exact below 2⁵³, so no kernel or order of a BLAS can change it;
* blocks add up in int64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ConfigError
from pipeline.score.metrics.base import Floats, Metric, Scores

# Rows that share a key of the generator; also the rows of one matrix product.
BLOCK_ROWS = 1024
_UNIT = 2.0**-30
_EXACT = 2.0**53
# Of 65,536 equally likely draws, how many give the weight 0, 1, … 8: e⁻¹/k! in 16 bits
# (mean 1.00005, variance 1.0003; a weight above 8 has probability 1e-6).
_DRAWS = (24109, 24109, 12055, 4018, 1005, 201, 33, 5, 1)
_WEIGHTS = np.repeat(np.arange(len(_DRAWS), dtype=np.uint8), _DRAWS)  # small: it stays in the cache
_WEIGHTS_PER_COUNTER = 16  # a step of Philox gives four words of four draws

# Half of what 64 bits hold: weights make the sum of a replicate a little larger.
_LARGEST_SUM = 2.0**62

# A block holds 8 KB per replicate: 0.8 GB.
MAX_REPLICATES = 100_000

Sums = NDArray[np.int64]


class Interval(NamedTuple):
    """The interval of one score.

    Attributes:
        low: its lower end; None when the score is undefined in every replicate.
        high: its upper end; None likewise.
        undefined: replicates in which the score is undefined; they are left out.
    """

    low: float | None
    high: float | None
    undefined: int


def weights(seed: int, first_row: int, rows: int, replicates: int) -> Floats:
    """(rows, replicates) weights of rows ``first_row`` … of one block of ``BLOCK_ROWS``."""
    block, offset = divmod(first_row, BLOCK_ROWS)
    if offset + rows > BLOCK_ROWS:
        raise ValueError(f"{rows} rows from row {first_row} on reach beyond their block")
    steps = -(-replicates // _WEIGHTS_PER_COUNTER)  # of the counter, per row
    generator = np.random.Philox(
        key=np.array([seed, block], dtype=np.uint64), counter=offset * steps
    )
    words = generator.random_raw(rows * steps * 4).astype("<u8", copy=False)
    draws = words.view("<u2").reshape(rows, steps * _WEIGHTS_PER_COUNTER)
    return _WEIGHTS.take(draws[:, :replicates]).astype(np.float64)


def replicate_sums(statistics: Floats, integer: NDArray[np.bool_], drawn: Floats) -> Sums:
    """(replicates, columns) weighted sums of one block, in units of ``column_units``.

    Args:
        statistics: (rows, columns).
        integer: (columns,) which columns hold whole numbers.
        drawn: (rows, replicates) their ``weights``.
    """
    whole = np.rint(statistics / column_units(integer)).T
    if len(_DRAWS) * np.abs(whole).sum(axis=1).max(initial=0) < _EXACT:
        sums = (whole @ drawn).astype(np.int64)
    else:  # slower, and exact below 2⁶³
        sums = whole.astype(np.int64) @ drawn.astype(np.int64)
    return sums.T


def column_units(integer: NDArray[np.bool_]) -> Floats:
    """(columns,) what a sum of 1 stands for."""
    return np.where(integer, 1.0, _UNIT)


def intervals(metric: Metric, sums: Sums, confidence: float) -> dict[str, Interval]:
    """Percentile interval of each headline score of ``metric`` from its replicates' sums."""
    replicated = replicate_scores(metric, sums)
    return {
        name: percentile_interval([scores[name] for scores in replicated], confidence)
        for name in metric.headline
    }


def require_room(metric: Metric, totals: Sequence[int | float]) -> None:
    """Check that the replicates' sums fit into the integers that they are made of.

    Raises:
        ConfigError: a statistic whose sum is too large; names it.
    """
    integer = np.array([column.integer for column in metric.columns])
    for column, total, unit in zip(metric.columns, totals, column_units(integer), strict=True):
        if abs(total) >= _LARGEST_SUM * unit:
            raise ConfigError(
                f"the statistic {column.name} sums to {total:.3g}, and replicates of the bootstrap "
                f"hold less than {_LARGEST_SUM * unit:.3g}: give it in a larger unit, or set "
                "confidence to 0"
            )


def replicate_scores(metric: Metric, sums: Sums) -> list[Scores]:
    """The scores of each replicate."""
    integer = np.array([column.integer for column in metric.columns])
    totals = sums * column_units(integer)
    return [metric.scores(total) for total in totals.tolist()]


def percentile_interval(scores: list[float | None], confidence: float) -> Interval:
    """The interval that holds ``confidence`` of the replicates' ``scores``, tails alike."""
    defined = [score for score in scores if score is not None]
    undefined = len(scores) - len(defined)
    if not defined:
        return Interval(None, None, undefined)
    tail = (1 - confidence) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high), undefined)
