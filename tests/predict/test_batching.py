"""Laws of batch planning."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.predict.batching import plan_batches


@given(
    lengths=st.lists(st.integers(1, 400), max_size=60),
    new_tokens=st.integers(1, 50),
    max_rows=st.integers(1, 20),
    max_tokens=st.none() | st.integers(1, 4000),
)
def test_every_row_once_within_both_limits(
    lengths: list[int], new_tokens: int, max_rows: int, max_tokens: int | None
) -> None:
    batches = plan_batches(lengths, new_tokens, max_rows, max_tokens)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= max_rows for batch in batches)
    for batch in batches:
        padded = len(batch) * (max(lengths[row] for row in batch) + new_tokens)
        assert max_tokens is None or padded <= max_tokens or len(batch) == 1
    widths = [lengths[row] for batch in batches for row in batch]
    assert widths == sorted(lengths, reverse=True)


def test_equal_lengths_stay_in_row_order() -> None:
    assert plan_batches([5, 7, 5, 7, 5], 1, 2, None) == [[1, 3], [0, 2], [4]]
