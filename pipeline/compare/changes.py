"""The difference of each row: which set wins it, and where it is largest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.compare.result import Change
from pipeline.score.metrics.base import Floats


class Counts(NamedTuple):
    """Rows by which set has the better score of them.

    Attributes:
        wins: the system has.
        ties: none has.
        losses: the baseline has.
        undefined: one of the two has no score.
    """

    wins: int
    ties: int
    losses: int
    undefined: int


def count(baseline: Floats, system: Floats, lower_is_better: bool) -> Counts:
    """Count the rows.

    Args:
        baseline: (rows,) scores, NaN where undefined.
        system: (rows,) likewise.
        lower_is_better: whether the score counts errors.
    """
    better = system < baseline if lower_is_better else system > baseline
    worse = system > baseline if lower_is_better else system < baseline
    return Counts(
        wins=int(better.sum()),
        ties=int((system == baseline).sum()),
        losses=int(worse.sum()),
        undefined=int((np.isnan(baseline) | np.isnan(system)).sum()),
    )


def largest(ids: pa.Array, baseline: Floats, system: Floats, top: int) -> list[Change]:
    """The ``top`` rows whose scores differ most, largest first, then in the order of rows."""
    differences = system - baseline
    changed = np.flatnonzero(~np.isnan(differences) & (differences != 0))
    order = changed[np.argsort(-np.abs(differences[changed]), kind="stable")][:top]
    return [
        Change(
            id=ids[row].as_py(),
            baseline=float(baseline[row]),
            system=float(system[row]),
            difference=float(differences[row]),
        )
        for row in order.tolist()
    ]
