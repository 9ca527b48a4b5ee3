"""Sums of floats that can be merged without changing a bit.

``math.fsum`` gives the correctly rounded sum of its arguments, so it does not depend on their
order; but a sum of such sums is rounded twice and does. So a sum is kept as an *expansion*, a few
floats whose exact sum it is: the rounded sum, what rounding left, what was left of that, until
nothing is (Shewchuk 1997, "Adaptive Precision Floating-Point Arithmetic"). Expansions of chunks,
put together in any order, give the bits of one ``fsum`` over all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable


class ExactSum:
    """The exact sum of finite floats."""

    def __init__(self, values: Iterable[float] = ()) -> None:
        self._expansion: list[float] = []
        self.add(values)

    def add(self, values: Iterable[float]) -> None:
        """Add ``values``.

        Raises:
            ValueError: one of them is infinite or not a number.
        """
        rest = [*self._expansion, *values]
        expansion = []
        while part := math.fsum(rest):
            if not math.isfinite(part):
                raise ValueError("a statistic is infinite or not a number")
            expansion.append(part)
            rest.append(-part)
        self._expansion = expansion

    def merge(self, other: ExactSum) -> None:
        """Add all that was added to ``other``."""
        self.add(other._expansion)

    def __float__(self) -> float:
        return math.fsum(self._expansion)
