"""Scores of a few texts in memory, for a look or a test; no set, no intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.score.columns import statistics_of
from pipeline.score.metrics import Entry, parse_metrics
from pipeline.score.metrics.base import Floats, Scores
from pipeline.score.tally import MetricTally


def score_corpus(
    entry: Entry,
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    columns: Mapping[str, Floats] | None = None,
) -> Scores:
    """Scores of ``predictions`` by one metric: the headline first, then the details.

    Args:
        entry: as in ``score.metrics``: a name, or a map of a name to its options.
        predictions: one text per row.
        references: one or more texts per row.
        columns: (rows,) values, for a metric that needs some.

    Raises:
        ConfigError: an unknown metric or option.
        ValueError: the lengths differ, or a row has no reference.
    """
    (named,) = parse_metrics([entry])
    statistics = statistics_of(named.metric, predictions, references, columns or {})
    tally = MetricTally(named, replicates=0)
    examples = named.metric.example_scores(statistics)
    tally.add(statistics, examples, np.empty((len(predictions), 0)))
    return named.metric.scores(tally.totals())
