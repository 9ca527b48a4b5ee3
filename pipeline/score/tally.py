"""What is added up over rows, chunks and workers.

A tally is small whatever the number of rows, and merging two is exact and does not depend on the
order: integers add, floats are exact sums, replicates are integers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipeline.score.exact import ExactSum
from pipeline.score.histogram import BINS, count_bins
from pipeline.score.interval import Sums, replicate_sums
from pipeline.score.metrics import NamedMetric
from pipeline.score.metrics.base import Floats


class MetricTally:
    """Sums of one metric's statistics.

    Attributes:
        sums: (replicates, columns) weighted sums, in units of ``interval.column_units``.
        undefined: headline score -> rows in which it is undefined.
        histograms: headline score -> (BINS,) rows per bin.
    """

    def __init__(self, named: NamedMetric, replicates: int) -> None:
        metric = named.metric
        self._scale = metric.scale
        self._integer: NDArray[np.bool_] = np.array([column.integer for column in metric.columns])
        self._integers = [0] * len(metric.columns)
        self._floats = [ExactSum() for _ in metric.columns]
        self.sums: Sums = np.zeros((replicates, len(metric.columns)), np.int64)
        self.undefined = dict.fromkeys(metric.headline, 0)
        self.histograms = {name: np.zeros(BINS, np.int64) for name in metric.headline}

    def add(self, statistics: Floats, examples: dict[str, Floats], drawn: Floats) -> None:
        """Add rows of one block.

        Args:
            statistics: (rows, columns).
            examples: headline score -> (rows,) score of each row, NaN where undefined.
            drawn: (rows, replicates) weights.
        """
        for column, integer in enumerate(self._integer):
            if integer:
                self._integers[column] += int(statistics[:, column].astype(np.int64).sum())
            else:
                self._floats[column].add(statistics[:, column].tolist())
        for name, scores in examples.items():
            self.undefined[name] += int(np.isnan(scores).sum())
            self.histograms[name] += count_bins(scores, self._scale)
        self.sums += replicate_sums(statistics, self._integer, drawn)

    def merge(self, other: MetricTally) -> None:
        """Add all that was added to ``other``."""
        for column, integer in enumerate(self._integer):
            if integer:
                self._integers[column] += other._integers[column]
            else:
                self._floats[column].merge(other._floats[column])
        for name in self.undefined:
            self.undefined[name] += other.undefined[name]
            self.histograms[name] += other.histograms[name]
        self.sums += other.sums

    def totals(self) -> list[int | float]:
        """The sum of each column: ints exact, floats correctly rounded."""
        return [
            whole if integer else float(exact)
            for integer, whole, exact in zip(
                self._integer, self._integers, self._floats, strict=True
            )
        ]


@dataclass
class Tally:
    """All that is known about some rows.

    Attributes:
        metrics: one per metric, in the order of the settings.
        rows: how many.
        empty_predictions: rows whose prediction is blank.
        empty_references: rows with nothing but blank references.
        dropped_references: blank references that stood beside others.
        truncated: rows whose prompt was cut.
        out_of_vocabulary_ids: token ids that the tokenizer does not know.
        finish_reasons: reason -> rows.
        references_per_row: number of references -> rows.
    """

    metrics: list[MetricTally]
    rows: int = 0
    empty_predictions: int = 0
    empty_references: int = 0
    dropped_references: int = 0
    truncated: int = 0
    out_of_vocabulary_ids: int = 0
    finish_reasons: Counter[str] = field(default_factory=Counter)
    references_per_row: Counter[int] = field(default_factory=Counter)

    @classmethod
    def empty(cls, metrics: tuple[NamedMetric, ...], replicates: int) -> Tally:
        """The tally of no rows; ``replicates`` is 0 where no interval is wanted."""
        return cls([MetricTally(named, replicates) for named in metrics])

    def merge(self, other: Tally) -> None:
        """Add all that was added to ``other``."""
        for ours, theirs in zip(self.metrics, other.metrics, strict=True):
            ours.merge(theirs)
        self.rows += other.rows
        self.empty_predictions += other.empty_predictions
        self.empty_references += other.empty_references
        self.dropped_references += other.dropped_references
        self.truncated += other.truncated
        self.out_of_vocabulary_ids += other.out_of_vocabulary_ids
        self.finish_reasons += other.finish_reasons
        self.references_per_row += other.references_per_row
