"""The laws that every metric obeys (DESIGN, C5); run against each by ``test_contract``.

A metric of your own: ``check_contract(MyMetric(), rows)``, rows being (prediction, references).
"""

from __future__ import annotations

import copy
import json
import pickle
import random

import numpy as np

from pipeline.score.interval import intervals, weights
from pipeline.score.metrics import NamedMetric
from pipeline.score.metrics.base import Metric
from pipeline.score.tally import MetricTally

REPLICATES = 20

Rows = list[tuple[str, list[str]]]


def check_contract(metric: Metric, rows: Rows, seed: int = 0) -> None:
    """Assert every law on ``rows``."""
    predictions = [prediction for prediction, _ in rows]
    references = [texts for _, texts in rows]
    before = copy.deepcopy((predictions, references))
    statistics = metric.statistics(predictions, references)
    kept = statistics.copy()

    assert statistics.shape == (len(rows), len(metric.columns))
    assert np.isfinite(statistics).all()
    for index, column in enumerate(metric.columns):
        assert not column.integer or (statistics[:, index] % 1 == 0).all()
    examples = metric.example_scores(statistics)
    totals = _tally(metric, statistics, [len(rows)]).totals()
    scores = metric.scores(totals)

    # Inputs are not modified; twice is the same; a pickled metric is the metric.
    assert (predictions, references) == before
    assert np.array_equal(statistics, kept)
    for twin in (metric, pickle.loads(pickle.dumps(metric))):
        assert np.array_equal(twin.statistics(predictions, references), statistics)
        assert twin.scores(totals) == scores
        assert twin.signature(1) == metric.signature(1)

    _check_rows_are_independent(metric, rows, statistics)
    _check_examples(metric, statistics, examples)
    _check_merging(metric, statistics, random.Random(seed))

    # Undefined is null, and JSON says so; headline scores come first.
    json.dumps(scores, allow_nan=False)
    assert tuple(scores)[: len(metric.headline)] == metric.headline
    nothing = metric.scores([0] * len(metric.columns))
    assert [nothing[name] for name in metric.headline] == [None] * len(metric.headline)


def _check_rows_are_independent(metric: Metric, rows: Rows, statistics: np.ndarray) -> None:
    for index, (prediction, texts) in enumerate(rows):
        alone = metric.statistics([prediction], [texts])
        assert np.array_equal(alone[0], statistics[index])


def _check_examples(metric: Metric, statistics: np.ndarray, examples: dict) -> None:
    """The vectorised form has the bits of the loop over rows."""
    assert tuple(examples) == metric.headline
    looped = Metric.example_scores(metric, statistics)
    for name, scores in examples.items():
        assert scores.dtype == np.float64
        assert np.array_equal(scores, looped[name], equal_nan=True)


def _check_merging(metric: Metric, statistics: np.ndarray, rng: random.Random) -> None:
    """Chunks of any size, merged in any order, give the same bits."""
    whole = _tally(metric, statistics, [len(statistics)])
    sizes = []
    while sum(sizes) < len(statistics):
        sizes.append(rng.randint(1, len(statistics) - sum(sizes)))
    merged = _tally(metric, statistics, sizes, rng)
    assert merged.totals() == whole.totals()
    assert metric.scores(merged.totals()) == metric.scores(whole.totals())
    assert np.array_equal(merged.sums, whole.sums)
    assert merged.undefined == whole.undefined
    assert intervals(metric, merged.sums, 0.9) == intervals(metric, whole.sums, 0.9)


def _tally(
    metric: Metric, statistics: np.ndarray, sizes: list[int], rng: random.Random | None = None
) -> MetricTally:
    named = NamedMetric("metric", "", metric)
    parts, start = [], 0
    for size in sizes:
        part = MetricTally(named, REPLICATES)
        block = statistics[start : start + size]
        part.add(block, metric.example_scores(block), weights(0, start, size, REPLICATES))
        parts.append(pickle.loads(pickle.dumps(part)))  # as a worker sends it
        start += size
    if rng is not None:
        rng.shuffle(parts)
    total = MetricTally(named, REPLICATES)
    for part in parts:
        total.merge(part)
    return total
