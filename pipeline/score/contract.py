"""The laws that every metric obeys, as a check that runs against any of them.

For a metric of your own: ``check_contract(MyMetric(), rows)`` in a test of yours, ``rows`` being
(prediction, references); give it empty texts and several references too. The tests here run it
against every metric on random rows.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.score.columns import statistics_of
from pipeline.score.interval import intervals, weights
from pipeline.score.metrics import NamedMetric
from pipeline.score.metrics.base import Floats, Metric, fault_of
from pipeline.score.tally import MetricTally

REPLICATES = 20

Rows = Sequence[tuple[str, list[str]]]


class _Block(NamedTuple):
    predictions: list[str]
    references: list[list[str]]
    columns: dict[str, Floats]

    def row(self, index: int) -> _Block:
        return _Block(
            self.predictions[index : index + 1],
            self.references[index : index + 1],
            {name: values[index : index + 1] for name, values in self.columns.items()},
        )


def check_contract(
    metric: Metric, rows: Rows, columns: Mapping[str, Floats] | None = None, seed: int = 0
) -> None:
    """Raise ``AssertionError``, naming the law, unless ``metric`` obeys every law on ``rows``.

    Args:
        metric: the metric.
        rows: (prediction, references) each; at most ``interval.BLOCK_ROWS`` of them.
        columns: (rows,) values of each column that a ``ColumnMetric`` needs.
        seed: of the ways in which the rows are cut and shuffled.
    """
    block = _Block([row[0] for row in rows], [row[1] for row in rows], dict(columns or {}))
    before = copy.deepcopy(block)
    statistics = statistics_of(metric, *block)
    _check_matrix(metric, statistics, len(rows))
    examples = metric.example_scores(statistics.copy())
    totals = _tally(metric, statistics, [len(rows)]).totals()
    scores = metric.scores(totals)

    unchanged = block[:2] == before[:2] and all(
        np.array_equal(values, before.columns[name]) for name, values in block.columns.items()
    )
    _require(unchanged, "its inputs are not modified")
    for twin in (metric, pickle.loads(pickle.dumps(metric))):
        again = statistics_of(twin, *block)
        same = np.array_equal(again, statistics) and twin.scores(totals) == scores
        _require(same, "twice is the same, and a pickled metric is the metric")
        _require(twin.signature(1) == metric.signature(1), "its signature is always the same")
    for index in range(len(rows)):
        alone = statistics_of(metric, *block.row(index))
        _require(np.array_equal(alone[0], statistics[index]), "rows do not know of each other")

    _check_examples(metric, statistics, examples)
    _check_merging(metric, statistics, random.Random(seed))

    json.dumps(scores, allow_nan=False)
    named_first = tuple(scores)[: len(metric.headline)] == metric.headline
    _require(named_first, f"scores() begins with the headline {metric.headline}")
    nothing = metric.scores([0] * len(metric.columns))
    undefined = [nothing[name] for name in metric.headline] == [None] * len(metric.headline)
    _require(undefined, "the headline of no rows is None")


def _require(holds: bool | np.bool_, law: str) -> None:
    if not holds:
        raise AssertionError(f"the contract of metrics is broken: {law}")


def _check_matrix(metric: Metric, statistics: Floats, rows: int) -> None:
    _require(statistics.dtype == np.float64, f"statistics() gives float64, not {statistics.dtype}")
    fault = fault_of(statistics, metric.columns, rows)
    _require(fault is None, f"statistics() gave {fault}")


def _check_examples(metric: Metric, statistics: Floats, examples: dict[str, Floats]) -> None:
    _require(tuple(examples) == metric.headline, "example_scores() names the headline scores")
    looped = Metric.example_scores(metric, statistics)
    for name, scores in examples.items():
        _require(scores.dtype == np.float64, f"the example scores of {name} are float64")
        _require(
            np.array_equal(scores, looped[name], equal_nan=True),
            f"the example scores of {name} are those of scores(row, per_row=True)",
        )


def _check_merging(metric: Metric, statistics: Floats, rng: random.Random) -> None:
    whole = _tally(metric, statistics, [len(statistics)])
    sizes: list[int] = []
    while sum(sizes) < len(statistics):
        sizes.append(rng.randint(1, len(statistics) - sum(sizes)))
    merged = _tally(metric, statistics, sizes, rng)
    _require(
        merged.totals() == whole.totals()
        and metric.scores(merged.totals()) == metric.scores(whole.totals())
        and np.array_equal(merged.sums, whole.sums)
        and merged.undefined == whole.undefined
        and intervals(metric, merged.sums, 0.9) == intervals(metric, whole.sums, 0.9),
        "chunks of any size, merged in any order, give the same bits",
    )


def _tally(
    metric: Metric, statistics: Floats, sizes: list[int], rng: random.Random | None = None
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
