from __future__ import annotations

import math
import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.score.exact import ExactSum

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e200, max_value=1e200)


@settings(deadline=None)
@given(chunks=st.lists(st.lists(finite)), rng=st.randoms(use_true_random=False))
def test_merged_sums_have_the_bits_of_one_fsum(
    chunks: list[list[float]], rng: random.Random
) -> None:
    total = ExactSum()
    sums = [pickle.loads(pickle.dumps(ExactSum(chunk))) for chunk in chunks]
    rng.shuffle(sums)
    for part in sums:
        total.merge(part)
    assert float(total) == math.fsum(value for chunk in chunks for value in chunk)


def test_sums_of_rounded_sums_would_differ() -> None:
    chunks = [[1.0, 2**-53], [2**-54]]
    total = ExactSum()
    for chunk in chunks:
        total.merge(ExactSum(chunk))
    assert float(total) == 1 + 2**-52
    assert math.fsum(map(math.fsum, chunks)) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_has_no_sum_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="infinite or not a number"):
        ExactSum([1.0, value])
