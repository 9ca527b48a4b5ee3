"""The columns of one data set in a grid: its systems against the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pipeline.compare.compare import compare
from pipeline.compare.grid_result import Cell, Column
from pipeline.compare.result import Difference
from pipeline.report.results import read_summary

Differences = dict[str, dict[str, Difference]]  # system -> score -> its difference
Entry = Mapping[str, float | None]


class Sampling(NamedTuple):
    """The paired bootstrap: level of the intervals, in (0, 1), replicates, seed."""

    confidence: float = 0.95
    replicates: int = 1000
    seed: int = 0


class Block(NamedTuple):
    """The columns of a data set, and for each system a cell in each of them."""

    columns: list[Column]
    cells: dict[str, list[Cell | None]]


def known_names(summary: Mapping[str, Any]) -> dict[str, bool]:
    """Each metric and score of a set -> whether it is a sum of statistics, so can be compared."""
    known: dict[str, bool] = {}
    for label, entry in summary["metrics"].items():
        known |= dict.fromkeys([label, *entry["scores"]], "options" in entry)
    return known


def compare_block(
    group: str | None,
    folders: Mapping[str, Path],
    baseline: str,
    metrics: Sequence[str],
    sampling: Sampling,
) -> Block:
    """Compare the systems of one data set.

    Args:
        group: the data set, as the columns name it.
        folders: system -> its scores.
        baseline: one of the systems.
        metrics: names of metrics or scores, of which the data set may have some; none is all.
        sampling: of the bootstrap.

    Raises:
        ScoresError: scores that cannot be compared; says why.
    """
    summaries = {name: read_summary(path) for name, path in folders.items()}
    known = known_names(summaries[baseline])
    wanted = {name for name in metrics if name in known} if metrics else set(known)
    differences = _differences(folders, baseline, metrics, known, sampling)
    block = Block([], {name: [] for name in folders})
    for label, metric in summaries[baseline]["metrics"].items():
        for score in metric["scores"]:
            if not wanted & {label, score}:
                continue
            found = {name: of[score] for name, of in differences.items() if score in of}
            lower = next((each.lower_is_better for each in found.values()), None)
            column = Column(
                group=group,
                score=score,
                scale=metric["scale"],
                lower_is_better=lower,
                rows=summaries[baseline]["rows"],
                confidence=summaries[baseline]["confidence"],
            )
            block.columns.append(column)
            entries = {name: _entry(summary, label, score) for name, summary in summaries.items()}
            best = _best(entries, lower)
            for name, entry in entries.items():
                block.cells[name].append(_cell(entry, found.get(name), best))
    return block


def _differences(
    folders: Mapping[str, Path],
    baseline: str,
    metrics: Sequence[str],
    known: Mapping[str, bool],
    sampling: Sampling,
) -> Differences:
    """What can be compared of ``metrics``; results that are no sums of statistics cannot."""
    compared = [name for name in metrics or known if known.get(name)]
    if not compared:
        return {}
    names = [name for name in folders if name != baseline]
    found = compare(
        folders[baseline],
        [folders[name] for name in names],
        metrics=compared if metrics else (),
        confidence=sampling.confidence,
        replicates=sampling.replicates,
        seed=sampling.seed,
        top=0,
    )
    return {name: system.differences for name, system in zip(names, found.systems, strict=True)}


def _entry(summary: Mapping[str, Any], label: str, score: str) -> Entry:
    entry = summary["metrics"].get(label, {"scores": {}})["scores"].get(score)
    return entry or {"value": None, "low": None, "high": None}


def _best(entries: Mapping[str, Entry], lower_is_better: bool | None) -> float | None:
    """The best value; None where the direction is not known, or there is nothing to choose from."""
    values = [entry["value"] for entry in entries.values() if entry["value"] is not None]
    if lower_is_better is None or len(set(values)) < 2:
        return None
    return min(values) if lower_is_better else max(values)


def _cell(entry: Entry, difference: Difference | None, best: float | None) -> Cell:
    value = entry["value"]
    cell = Cell(
        value=value,
        low=entry["low"],
        high=entry["high"],
        best=best is not None and value == best,
    )
    if difference is None:
        return cell
    return msgspec.structs.replace(
        cell,
        difference=difference.difference,
        difference_low=difference.low,
        difference_high=difference.high,
        p_value=difference.p_value,
        verdict=_verdict(difference),
    )


def _verdict(difference: Difference) -> str | None:
    low, high = difference.low, difference.high
    if low is None or high is None or low <= 0 <= high:
        return None
    return "worse" if (high < 0) != difference.lower_is_better else "better"
