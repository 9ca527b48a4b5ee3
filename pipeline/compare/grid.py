"""A grid of scored sets against one of them: a row per system, columns per data set and score.

Each data set is a comparison of its own (``compare``), with the same system as the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.compare.axes import Axes
from pipeline.compare.block import Sampling, compare_block, known_names
from pipeline.compare.grid_result import Cell, Column, Grid, Row
from pipeline.errors import MOST_LISTED, ConfigError, ScoresError, did_you_mean
from pipeline.report.results import SUMMARY, read_summary

Folders = dict[str, Path]  # name of a system -> its scores of one data set


def compare_grid(
    axes: Axes,
    *,
    across: str | None = None,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
    allow_missing: bool = False,
    sampling: Sampling | None = None,
) -> Grid:
    """Compare the sets of ``axes``, data set by data set.

    Args:
        axes: where the scores are.
        across: the axis of the data sets; None where all scores are of one.
        baseline: values of the other axes, joined by ``/``; None is the first system.
        metrics: names of metrics or scores; none is all. Each data set shows those that it has.
        allow_missing: leave cells without scores empty.
        sampling: of the bootstrap; None is the default.

    Raises:
        ConfigError: an unknown axis, system or metric.
        ScoresError: scores that are missing or cannot be compared; says why.
    """
    sampling = sampling or Sampling()
    systems = _systems(axes, across)
    baseline = next(iter(systems)) if baseline is None else baseline
    if baseline not in systems:
        raise ConfigError(
            f"--baseline: there is no system '{baseline}'{did_you_mean(baseline, systems)}"
        )
    groups = _groups(axes, across, systems)
    missing = _missing(groups, baseline, allow_missing)
    _require_known(metrics, [folders[baseline] for folders in groups.values()])
    columns: list[Column] = []
    cells: dict[str, list[Cell | None]] = {name: [] for name in systems}
    for group, folders in groups.items():
        there = {name: path for name, path in folders.items() if path not in missing}
        block = compare_block(group, there, baseline, metrics, sampling)
        columns += block.columns
        for name in systems:
            cells[name] += block.cells.get(name, [None] * len(block.columns))
    return Grid(
        across=across,
        baseline=baseline,
        confidence=sampling.confidence,
        replicates=sampling.replicates,
        seed=sampling.seed,
        missing=[str(path) for path in missing],
        columns=columns,
        rows=[Row(system=system, cells=cells[name]) for name, system in systems.items()],
    )


def _systems(axes: Axes, across: str | None) -> dict[str, dict[str, str]]:
    """``small/step-1000`` -> its values of the axes that make a system."""
    if across is not None and across not in axes.values:
        hint = did_you_mean(across, axes.values)
        raise ConfigError(f"--across: there is no axis '{across}'{hint}")
    names = [name for name in axes.values if name != across]
    if not names:
        raise ConfigError(f"--across {across}: {axes.pattern} has no other axis for the rows")
    return {"/".join(system.values()): system for system in axes.along(names)}


def _groups(
    axes: Axes, across: str | None, systems: Mapping[str, dict[str, str]]
) -> dict[str | None, Folders]:
    """Value of the axis across, or None where there is none -> the folders of the systems."""
    if across is None:
        return {None: {name: axes.folder(system) for name, system in systems.items()}}
    return {
        value: {name: axes.folder({**system, across: value}) for name, system in systems.items()}
        for value in axes.values[across]
    }


def _missing(groups: Mapping[str | None, Folders], baseline: str, allowed: bool) -> list[Path]:
    paths = [path for folders in groups.values() for path in folders.values()]
    missing = [path for path in paths if not (path / SUMMARY).exists()]
    if missing and not allowed:
        # Whole paths: what differs is at their end.
        named = ", ".join(map(str, missing[:MOST_LISTED]))
        more = ", …" if len(missing) > MOST_LISTED else ""
        raise ScoresError(
            f"{len(missing)} of {len(paths)} cells have no scores: {named}{more}; score them, or "
            "leave them empty with --allow-missing"
        )
    for folders in groups.values():
        if folders[baseline] in missing:
            raise ScoresError(
                f"{folders[baseline]}: the baseline {baseline} has no scores there; score it, or "
                "compare with another one: --baseline"
            )
    return missing


def _require_known(metrics: Sequence[str], baselines: Sequence[Path]) -> None:
    known = {name for path in baselines for name in known_names(read_summary(path))}
    for name in metrics:
        if name not in known:
            raise ConfigError(f"--metric: there is no '{name}'{did_you_mean(name, known)}")
