from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.score import interval
from pipeline.score.interval import column_units, intervals, replicate_sums, weights
from pipeline.score.metrics.bleu import Bleu
from pipeline.score.metrics.rouge import Rouge, RougeOptions


@settings(deadline=None)
@given(
    cuts=st.sets(st.integers(1, 1023), max_size=5),
    block=st.integers(0, 3),
    replicates=st.sampled_from([1, 16, 17, 100]),
)
def test_weights_do_not_depend_on_where_chunks_begin(
    cuts: set[int], block: int, replicates: int
) -> None:
    start = block * interval.BLOCK_ROWS
    whole = weights(7, start, interval.BLOCK_ROWS, replicates)
    bounds = [0, *sorted(cuts), interval.BLOCK_ROWS]
    parts = [
        weights(7, start + first, last - first, replicates) for first, last in pairwise(bounds)
    ]
    assert np.array_equal(np.concatenate(parts), whole)


def test_weights_are_poisson_with_mean_1() -> None:
    drawn = weights(0, 0, 1024, 1000)
    for weight in range(5):
        share = (drawn == weight).mean()
        assert share == pytest.approx(math.exp(-1) / math.factorial(weight), abs=3e-3)
    assert abs(np.corrcoef(drawn[0], drawn[1])[0, 1]) < 0.1


def test_seeds_and_blocks_differ() -> None:
    first = weights(0, 0, 100, 50)
    assert not np.array_equal(first, weights(1, 0, 100, 50))
    assert not np.array_equal(first, weights(0, interval.BLOCK_ROWS, 100, 50))


def test_weights_are_the_same_on_every_machine() -> None:
    # NumPy 2.4.6 on x86-64; Philox4x64-10 (Salmon et al. 2011) is specified, and NumPy keeps its
    # bit generators' streams (NEP 19). A change here changes everybody's intervals.
    assert weights(0, 1023, 1, 20).astype(int).tolist() == [
        [2, 1, 1, 1, 0, 0, 1, 3, 2, 3, 0, 2, 1, 0, 0, 1, 1, 3, 0, 0]
    ]


def test_rows_of_two_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="reach beyond their block"):
        weights(0, 1000, 100, 1)


def test_large_statistics_stay_exact() -> None:
    # Beyond 2^53 a matrix product in floats would round.
    statistics = np.full((100, 1), 2.0**51 + 1)
    drawn = weights(0, 0, 100, 4)
    sums = replicate_sums(statistics, np.array([True]), drawn)
    expected = [sum(int(weight) * (2**51 + 1) for weight in column) for column in drawn.T]
    assert sums[:, 0].tolist() == expected


def test_agrees_with_resampling_rows() -> None:
    # The ordinary bootstrap: rows drawn with replacement, plain floats.
    rng = np.random.default_rng(0)
    predictions = [" ".join(rng.choice(list("abcdefgh"), 12)) for _ in range(300)]
    references = [[" ".join(rng.choice(list("abcdefgh"), 12))] for _ in range(300)]
    for metric in (Rouge(RougeOptions(types=("rouge1",))), Bleu()):
        statistics = metric.statistics(predictions, references)
        integer = np.array([column.integer for column in metric.columns])
        sums = replicate_sums(statistics, integer, weights(0, 0, 300, 2000))
        (name,) = metric.headline
        found = intervals(metric, sums, 0.95)[name]
        draws = rng.integers(0, 300, (2000, 300))
        resampled = [metric.scores(statistics[draw].sum(axis=0).tolist())[name] for draw in draws]
        low, high = np.quantile(resampled, [0.025, 0.975])
        assert found.low == pytest.approx(low, abs=0.1 * (high - low))
        assert found.high == pytest.approx(high, abs=0.1 * (high - low))
        assert found.undefined == 0


def test_float_columns_are_rounded_and_integers_are_not() -> None:
    units = column_units(np.array([True, False]))
    assert units.tolist() == [1.0, 2.0**-30]
    sums = replicate_sums(np.array([[3.0, 1 / 3]]), np.array([True, False]), np.ones((1, 1)))
    assert sums.tolist() == [[3, round(2**30 / 3)]]
