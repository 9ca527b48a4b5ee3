"""A grid of systems and data sets, as it stands in the JSON."""

from __future__ import annotations

import msgspec


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One score of one system on one data set; None where undefined or not compared.

    Attributes:
        value: the score.
        low: lower end of its interval, as ``score`` wrote it.
        high: upper end.
        difference: value minus that of the baseline.
        difference_low: lower end of the difference's interval, paired by row.
        difference_high: upper end.
        p_value: see ``significance``.
        verdict: ``better`` or ``worse`` than the baseline where the difference's interval leaves
            out 0.
        best: whether no system has a better value.
    """

    value: float | None
    low: float | None
    high: float | None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p_value: float | None = None
    verdict: str | None = None
    best: bool = False


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A score on a data set.

    Attributes:
        group: value of the axis that the columns go across; None where there is none.
        score: its name.
        scale: what a perfect score is.
        lower_is_better: whether it counts errors; None where that is not known.
        rows: of the data set.
        confidence: level of the cells' own intervals; 0 where there are none.
    """

    group: str | None
    score: str
    scale: float
    lower_is_better: bool | None
    rows: int
    confidence: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A system.

    Attributes:
        system: its values of the axes, but for that across.
        cells: one per column; None where there are no scores.
    """

    system: dict[str, str]
    cells: list[Cell | None]


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """The result.

    Attributes:
        across: axis that the columns go across.
        baseline: name of the system that the others are compared with.
        confidence: level of the differences' intervals.
        replicates: of the bootstrap.
        seed: of the bootstrap.
        missing: folders without scores.
        columns: data set by data set.
        rows: the systems, in the order of the axes.
    """

    across: str | None
    baseline: str
    confidence: float
    replicates: int
    seed: int
    missing: list[str]
    columns: list[Column]
    rows: list[Row]

    def to_json(self) -> str:
        """JSON text, keys in the order of the fields."""
        text = msgspec.json.format(msgspec.json.encode(self), indent=2)
        return text.decode() + "\n"
