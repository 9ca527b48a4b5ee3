"""One algebra for every metric: rows → additive statistics → scores.

A metric turns each row (a prediction and its references) into a few numbers that can be *added*,
and a sum of such numbers into scores. From that one idea follow: chunks scored anywhere and
merged, any order, per-example scores (the "sum" of one row), confidence intervals (reweighted
sums), groups. Scores themselves are never averaged: the mean of chunk BLEUs is not a BLEU.

The pattern is sacreBLEU's (Post 2018, ``metrics/base.py``) and torcheval's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.config import Config

# Below it, sums are exact: of whole numbers in float64, of others in replicates, which count in
# multiples of 2⁻³⁰ in 64 bits.
_LARGEST = {True: 2.0**53, False: 2.0**32}

Floats = NDArray[np.float64]
Scores = dict[str, float | None]


class Column(NamedTuple):
    """One statistic.

    Attributes:
        name: ``score.statistic``, such as ``rouge1.fmeasure``; the unit is in the metric's file.
        integer: whether every value is a whole number (below 2⁵³); such a column adds exactly as
            integers, another one through ``exact.ExactSum``.
    """

    name: str
    integer: bool


class NoOptions(Config, frozen=True):
    """Of a metric that has none."""


class Metric(ABC):
    """A metric with its options. Holds nothing else, so that it pickles and can be reused.

    Attributes:
        options: the metric's own ``Config``, of the type ``options_type``.
        columns: the statistics, in the order of the matrix.
        headline: the scores that stand for the metric (intervals, ``metrics.json``).
        scale: where the histogram of a headline score ends: 1.0 or 100.0, what the field calls a
            perfect score (or a hopeless one: TER, WER), where there is such a thing.
        lower_is_better: whether the headline scores count errors.
    """

    options_type: ClassVar[type[Config]] = NoOptions
    scale: ClassVar[float] = 1.0
    lower_is_better: ClassVar[bool] = False
    options: Config
    columns: tuple[Column, ...]
    headline: tuple[str, ...]

    def __init__(self, options: Any = None) -> None:
        """With ``options`` (an ``options_type``), or with the defaults."""
        self.options = self.options_type() if options is None else options

    @property
    def kind(self) -> type[Metric]:
        """The class whose code computes."""
        return type(self)

    @abstractmethod
    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        """(rows, columns) matrix of statistics; ``references`` has one or more texts per row.

        Raises:
            ValueError: the lengths differ, or a row has no reference.
        """

    @abstractmethod
    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        """Scores of a sum of statistics, in a stable order; None where undefined.

        Args:
            totals: one number per column.
            per_row: score as the oracle scores one sentence (BLEU: effective order).
        """

    @abstractmethod
    def signature(self, references_per_row: int | None = None) -> str:
        """Parameters and library versions, in sacreBLEU's form ``key:value|key:value``.

        Args:
            references_per_row: where it is the same for all rows; else the signature says ``var``.
        """

    def warnings(self, totals: Sequence[int | float]) -> list[str]:
        """What a reader of the scores has to know, in a sentence each; see ``scores``."""
        return []

    def example_scores(self, statistics: Floats) -> dict[str, Floats]:
        """Headline scores of each row, (rows,) each; NaN where undefined."""
        scored = [self.scores(row, per_row=True) for row in statistics.tolist()]
        return {
            name: np.array([_nan(scores[name]) for scores in scored], dtype=np.float64)
            for name in self.headline
        }


class ColumnMetric(Metric):
    """A metric that reads columns which phase one wrote beside the texts.

    Attributes:
        needs: their names, out of ``schema.OPTIONAL_FIELDS``.
    """

    needs: ClassVar[tuple[str, ...]]

    @abstractmethod
    def statistics(
        self,
        predictions: Sequence[str],
        references: Sequence[Sequence[str]],
        columns: Mapping[str, Floats] | None = None,
    ) -> Floats:
        """As in ``Metric``; ``columns`` has (rows,) values for each name in ``needs``.

        Raises:
            ValueError: the lengths differ, a row has no reference, or a column is missing.
        """


def fault_of(statistics: Floats, columns: Sequence[Column], rows: int) -> str | None:
    """What is wrong with a matrix of statistics; None where nothing is."""
    if statistics.shape != (rows, len(columns)):
        return f"a matrix of {statistics.shape}, not of (rows, columns) = {(rows, len(columns))}"
    for column, values in zip(columns, statistics.T, strict=True):
        if not np.isfinite(values).all():
            return f"a statistic {column.name} that is infinite or not a number"
        if column.integer and (values % 1 != 0).any():
            return f"a statistic {column.name} that is no whole number, which it says it is"
        if (np.abs(values) >= _LARGEST[column.integer]).any():
            return f"a statistic {column.name} of {_LARGEST[column.integer]:.3g} or more"
    return None


def check_rows(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raise ``ValueError`` unless there is a list of one or more references per prediction."""
    if len(predictions) != len(references):
        raise ValueError(
            f"{len(predictions)} predictions but {len(references)} lists of references"
        )
    for row, texts in enumerate(references):
        if not texts:
            raise ValueError(f"row {row} has no reference")


def _nan(score: float | None) -> float:
    return float("nan") if score is None else score
