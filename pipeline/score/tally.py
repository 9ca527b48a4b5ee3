"""What is added up over rows, chunks and workers.

A tally is small whatever the number of rows, and merging two is exact and does not depend on the
order: integers add, floats are exact sums, replicates are integers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.score.counts import Counts
from pipeline.score.exact import ExactSum
from pipeline.score.groups import Key, check_number, split_rows
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
class Group:
    """Rows that share their values of some columns.

    Attributes:
        metrics: one per metric, in the order of the settings.
        rows: how many.
    """

    metrics: list[MetricTally]
    rows: int = 0

    def add(self, matrices: list[Floats], examples: list[dict[str, Floats]], drawn: Floats) -> None:
        """Add rows of one block; see ``MetricTally.add``."""
        for tally, statistics, scores in zip(self.metrics, matrices, examples, strict=True):
            tally.add(statistics, scores, drawn)
        self.rows += len(drawn)

    def merge(self, other: Group) -> None:
        """Add all that was added to ``other``."""
        for ours, theirs in zip(self.metrics, other.metrics, strict=True):
            ours.merge(theirs)
        self.rows += other.rows


class Tally:
    """All that is known about some rows.

    Args:
        metrics: in the order of the settings.
        replicates: of the bootstrap; 0 where no interval is wanted.
        by: columns that make groups.

    Attributes:
        whole: sums over all rows.
        groups: values of the columns -> sums over the rows that have them.
        counts: of what had to be decided about the texts.
        truncated: rows whose prompt was cut.
        finish_reasons: reason -> rows.
    """

    def __init__(
        self, metrics: tuple[NamedMetric, ...], replicates: int, by: tuple[str, ...] = ()
    ) -> None:
        self._named = metrics
        self._replicates = replicates
        self._by = by
        self.whole = self._empty_group()
        self.groups: dict[Key, Group] = {}
        self.counts = Counts()
        self.truncated = 0
        self.finish_reasons: Counter[str] = Counter()

    @property
    def metrics(self) -> list[MetricTally]:
        """Sums over all rows, one per metric."""
        return self.whole.metrics

    @property
    def rows(self) -> int:
        """How many rows were added."""
        return self.whole.rows

    def add(
        self,
        block: pa.Table,
        matrices: list[Floats],
        examples: list[dict[str, Floats]],
        drawn: Floats,
    ) -> None:
        """Add one block of rows to the whole and to its groups.

        Args:
            block: the rows.
            matrices: of each metric, (rows, columns) statistics.
            examples: of each metric, headline score -> (rows,) score of each row.
            drawn: (rows, replicates) weights.

        Raises:
            ConfigError: there are more groups than memory has room for.
        """
        self.whole.add(matrices, examples, drawn)
        self.truncated += block.column("truncated").to_pylist().count(True)
        self.finish_reasons.update(block.column("finish_reason").to_pylist())
        for key, rows in split_rows(block, self._by) if self._by else ():
            self._group(key).add(
                [statistics[rows] for statistics in matrices],
                [{name: values[rows] for name, values in scores.items()} for scores in examples],
                drawn[rows],
            )

    def merge(self, other: Tally) -> None:
        """Add all that was added to ``other``."""
        self.whole.merge(other.whole)
        for key, group in other.groups.items():
            self._group(key).merge(group)
        self.counts.merge(other.counts)
        self.truncated += other.truncated
        self.finish_reasons += other.finish_reasons

    def _group(self, key: Key) -> Group:
        if key not in self.groups:
            check_number(len(self.groups) + 1, self._by)
            self.groups[key] = self._empty_group()
        return self.groups[key]

    def _empty_group(self) -> Group:
        return Group([MetricTally(named, self._replicates) for named in self._named])
