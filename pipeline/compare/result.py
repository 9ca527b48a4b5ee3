"""What a comparison finds, as it stands in the JSON."""

from __future__ import annotations

import msgspec


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One row whose score changed: its id, both scores, and system minus baseline."""

    id: str
    baseline: float
    system: float
    difference: float


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One score of a system against the baseline; None where undefined.

    Attributes:
        scale: what a perfect score is.
        lower_is_better: whether the score counts errors.
        baseline: score of the baseline over the rows that are compared.
        system: score of the system over the same rows.
        difference: system minus baseline.
        low: lower end of the difference's interval.
        high: upper end.
        p_value: see ``significance``.
        undefined_replicates: replicates without a difference, which are left out.
        wins: rows of which the system has the better score.
        ties: rows of which both have the same.
        losses: rows of which the baseline has the better one.
        undefined_rows: rows of which one of them has none.
        changed: the rows that changed most.
    """

    scale: float
    lower_is_better: bool
    baseline: float | None
    system: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    undefined_replicates: int
    wins: int
    ties: int
    losses: int
    undefined_rows: int
    changed: list[Change]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """A set that was compared.

    Attributes:
        scores: its folder, as it was named.
        content: hash of what was scored there.
        rows: that were scored there.
        complete: whether those are all rows of its predictions.
    """

    scores: str
    content: str
    rows: int
    complete: bool


class System(Side, frozen=True, kw_only=True):
    """A set against the baseline: name of a score -> its difference."""

    differences: dict[str, Difference]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The result.

    Attributes:
        rows: that were compared.
        confidence: level of the intervals.
        replicates: of the bootstrap.
        seed: of the bootstrap.
        signatures: metric -> how it was computed.
        not_compared: results of the sets that are no sums of statistics.
        baseline: the first set.
        systems: the others.
    """

    rows: int
    confidence: float
    replicates: int
    seed: int
    signatures: dict[str, str]
    not_compared: list[str]
    baseline: Side
    systems: list[System]

    def to_json(self) -> str:
        """JSON text, keys in the order of the fields."""
        text = msgspec.json.format(msgspec.json.encode(self), indent=2)
        return text.decode() + "\n"
