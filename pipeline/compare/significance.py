"""Is a difference of two sets more than chance? The paired bootstrap (Koehn 2004).

The p-value is that of ``sacrebleu --paired-bs`` (``sacrebleu.significance``, after Moses and
multeval): of the absolute differences in the replicates, shifted to mean 0, the share that is
larger than the absolute difference of the sets, one added to both counts.
"""

from __future__ import annotations

import numpy as np

from pipeline.compare.resample import Resampled
from pipeline.score.interval import Interval, percentile_interval
from pipeline.score.metrics.base import Floats


def difference(baseline: Resampled, system: Resampled) -> float | None:
    """System minus baseline; None where one of the two is undefined."""
    if baseline.value is None or system.value is None:
        return None
    return system.value - baseline.value


def difference_interval(baseline: Resampled, system: Resampled, confidence: float) -> Interval:
    """Percentile interval of the difference over the replicates in which both are defined."""
    differences = (system.replicates - baseline.replicates).tolist()
    defined = [None if np.isnan(value) else value for value in differences]
    return percentile_interval(defined, confidence)


def p_value(baseline: Resampled, system: Resampled) -> float | None:
    """The chance of a difference as large as this one between systems that are equally good.

    None where a score is undefined, or where no replicate shows any difference: two equal sets
    leave nothing to test (sacreBLEU gives them the smallest p-value there is).
    """
    observed = difference(baseline, system)
    differences: Floats = np.abs(system.replicates - baseline.replicates)
    differences = differences[~np.isnan(differences)]
    if observed is None or not differences.any():
        return None
    larger = np.count_nonzero(differences - differences.mean() > abs(observed))
    return (int(larger) + 1) / (len(differences) + 1)
