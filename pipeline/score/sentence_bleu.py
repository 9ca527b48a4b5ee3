"""BLEU of single rows, many at once: sacreBLEU's ``compute_bleu`` with effective order, to the bit.

Called row by row, ``compute_bleu`` would cost as much as all the rest of scoring. Products and
quotients are the same in NumPy. Logarithms, exponentials and sums are not (NumPy has its own
kernels, and Python ≥ 3.12 compensates ``sum``), so those are Python's, one by one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pipeline.score.metrics.base import Floats

# As in sacreBLEU; a method without a value has 0 here.
SMOOTH_DEFAULTS = {"none": 0.0, "floor": 0.1, "add-k": 1.0, "exp": 0.0}
LOG_OF_ZERO = -9999999999.0


def sentence_bleu(statistics: Floats, smooth_method: str, smooth_value: float | None) -> Floats:
    """(rows,) scores in 0–100.

    Args:
        statistics: (rows, 2 + 2 · orders) as in ``metrics.bleu``, each row with a match.
        smooth_method: as in sacreBLEU.
        smooth_value: as in sacreBLEU; None is its default.
    """
    value = SMOOTH_DEFAULTS[smooth_method] if smooth_value is None else smooth_value
    sys_len, ref_len = statistics[:, 0], statistics[:, 1]
    precisions, effective = _precisions(statistics[:, 2:], smooth_method, value)
    logs = [
        [math.log(precision) if precision else LOG_OF_ZERO for precision in row]
        for row in precisions.tolist()
    ]
    exponents = np.where(sys_len < ref_len, 1 - ref_len / sys_len, 0.0).tolist()
    return np.array(
        [
            math.exp(exponent) * math.exp(sum(row[:order]) / order)
            for row, order, exponent in zip(logs, effective.tolist(), exponents, strict=True)
        ],
        dtype=np.float64,
    )


def _precisions(
    counts: Floats, smooth_method: str, value: float
) -> tuple[Floats, NDArray[np.int64]]:
    """(rows, orders) smoothed precisions in percent, and (rows,) the effective order."""
    correct, total = (half.copy() for half in np.split(counts, 2, axis=1))
    if smooth_method == "add-k":
        correct[:, 1:] += value
        total[:, 1:] += value
    # The first order without n-grams ends the loop in sacreBLEU.
    reached = np.logical_and.accumulate(total > 0, axis=1)
    unmatched = reached & (correct == 0)
    divisor = np.where(reached, total, 1.0)
    precisions = np.where(reached, 100.0 * correct / divisor, 0.0)
    if smooth_method == "exp":
        powers = np.ldexp(1.0, np.cumsum(unmatched, axis=1))
        precisions = np.where(unmatched, 100.0 / (powers * divisor), precisions)
    elif smooth_method == "floor":
        precisions = np.where(unmatched, 100.0 * value / divisor, precisions)
    return precisions, reached.sum(axis=1)
