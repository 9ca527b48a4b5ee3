from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pipeline.compare.changes import Counts, count, largest

NAN = float("nan")
BASELINE = np.array([0.5, 0.5, 0.5, NAN, 0.1, NAN, 0.75])
SYSTEM = np.array([0.6, 0.5, 0.2, 0.5, NAN, NAN, 0.85])


@pytest.mark.parametrize("lower", [False, True])
def test_wins_ties_losses(lower: bool) -> None:
    expected = Counts(wins=1, ties=1, losses=2, undefined=3) if lower else Counts(2, 1, 1, 3)
    assert count(BASELINE, SYSTEM, lower) == expected


def test_the_largest_changes_in_either_direction() -> None:
    ids = pa.array([f"r{row}" for row in range(7)])
    baseline, system = np.zeros(7), np.array([1.0, -3.0, 3.0, 0.0, NAN, 0.5, 0.25])
    found = largest(ids, baseline, system, 3)
    assert [(change.id, change.difference) for change in found] == [
        ("r1", -3.0),
        ("r2", 3.0),
        ("r0", 1.0),
    ]
    assert [change.id for change in largest(ids, baseline, system, 99)][3:] == ["r5", "r6"]
    assert largest(ids, baseline, system, 0) == []
