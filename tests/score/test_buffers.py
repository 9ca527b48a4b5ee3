from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.score.buffers import filled, no_texts


@pytest.mark.parametrize("start", [0, 1, 3])
def test_filled(start: int) -> None:
    # A slice shares the buffers of the whole.
    array = pa.array([1.5, None, 2.5, None, 3.5]).slice(start)
    assert filled(array, -1).tolist() == [1.5, -1, 2.5, -1, 3.5][start:]
    assert filled(pa.array([1, 2], pa.int32()), -1).tolist() == [1, 2]


def test_no_texts() -> None:
    assert no_texts().to_pylist() == []
    no_texts().validate(full=True)
