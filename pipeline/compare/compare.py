"""Scored sets against a baseline, from their folders to a ``Comparison``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.compare.agreement import Compared, agree, not_additive
from pipeline.compare.changes import count, largest
from pipeline.compare.join import Joined, join
from pipeline.compare.resample import Resampled, resample
from pipeline.compare.result import Comparison, Difference, Side, System
from pipeline.compare.scored import Scored
from pipeline.compare.significance import difference, difference_interval, p_value
from pipeline.errors import ConfigError


def compare(
    baseline: Path,
    systems: Sequence[Path],
    *,
    metrics: Sequence[str] = (),
    common: bool = False,
    confidence: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    top: int = 3,
) -> Comparison:
    """Compare each of ``systems`` with ``baseline``.

    Holds the ids of all sets, and the statistics of one set at a time (8 bytes per row and column:
    224 MB for a million rows of the default metrics).

    Args:
        baseline: folder of scores.
        systems: folders of scores.
        metrics: names of metrics or scores; none is all.
        common: compare the rows that all sets have; else they must have the same.
        confidence: level of the intervals, in (0, 1).
        replicates: of the bootstrap.
        seed: of the bootstrap.
        top: rows that changed most, per score.

    Raises:
        ScoresError: scores that cannot be used, or that cannot be compared; says why.
        ConfigError: an unknown name in ``metrics``, or no level of intervals.
    """
    if not 0 < confidence < 1:  # nor NaN, which every option of a range lets through
        raise ConfigError(f"--confidence: expected a number between 0 and 1, got {confidence}")
    sets = [Scored(folder) for folder in (baseline, *systems)]
    compared = agree(sets, metrics)
    joined = join(sets, common)
    ours, *others = (
        (scored, resample(scored, place, joined.rows, compared, seed, replicates))
        for scored, place in zip(sets, joined.places, strict=True)
    )
    return Comparison(
        rows=len(joined.rows),
        confidence=confidence,
        replicates=replicates,
        seed=seed,
        signatures={each.named.label: each.signature for each in compared},
        not_compared=not_additive(sets),
        baseline=Side(**_side(ours[0])),
        systems=[
            System(
                **_side(scored),
                differences=_differences(joined, compared, ours[1], theirs, confidence, top),
            )
            for scored, theirs in others
        ],
    )


def _differences(
    joined: Joined,
    compared: Sequence[Compared],
    ours: dict[str, Resampled],
    theirs: dict[str, Resampled],
    confidence: float,
    top: int,
) -> dict[str, Difference]:
    found = {}
    for each in compared:
        for score in each.scores:
            name = each.named.rename(score)
            baseline, system = ours[name], theirs[name]
            interval = difference_interval(baseline, system, confidence)
            lower_is_better = each.named.metric.lower_is_better
            counts = count(baseline.examples, system.examples, lower_is_better)
            found[name] = Difference(
                scale=each.named.metric.scale,
                lower_is_better=lower_is_better,
                baseline=baseline.value,
                system=system.value,
                difference=difference(baseline, system),
                low=interval.low,
                high=interval.high,
                p_value=p_value(baseline, system),
                undefined_replicates=interval.undefined,
                wins=counts.wins,
                ties=counts.ties,
                losses=counts.losses,
                undefined_rows=counts.undefined,
                changed=largest(joined.ids, baseline.examples, system.examples, top),
            )
    return found


def _side(scored: Scored) -> dict[str, Any]:
    return {
        "scores": scored.name,
        **{key: scored.summary[key] for key in ("content", "rows", "complete")},
    }
