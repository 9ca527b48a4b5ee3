"""Which metrics some sets can be compared by: those that all have, computed alike.

Signatures and options must be equal, but for the number of references, which is compared row by
row (``join``). What is no sum of statistics has no replicates and no scores of rows: it cannot be
compared, and is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pipeline.compare.scored import Scored
from pipeline.errors import ConfigError, ScoresError, did_you_mean
from pipeline.score.metrics import CUSTOM, METRICS, NamedMetric, parse_metrics

_REFERENCES = "nrefs"


class Compared(NamedTuple):
    """A metric to compare by.

    Attributes:
        named: the metric.
        signature: how it was computed, as it stands in the baseline.
        scores: headline scores that are wanted, as ``Metric.headline`` names them.
    """

    named: NamedMetric
    signature: str
    scores: tuple[str, ...]


def agree(sets: Sequence[Scored], wanted: Sequence[str]) -> list[Compared]:
    """The metrics to compare by, in the order of the baseline.

    Args:
        sets: two or more; the first is the baseline.
        wanted: names of metrics or scores, as in the results; none is all.

    Raises:
        ScoresError: the sets have other metrics, or a metric was computed in another way.
        ConfigError: a name in ``wanted`` that the baseline does not have.
    """
    baseline, *systems = sets
    metrics = _additive(baseline)
    chosen = _choose(metrics, wanted)
    for system in systems:
        if not wanted:
            _require_same_metrics(baseline, system)
        for label in chosen:
            _require_alike(label, baseline, system)
    compared = []
    for label, scores in chosen.items():
        named = _restore(label, metrics[label], baseline)
        kept = tuple(name for name in named.metric.headline if named.rename(name) in scores)
        compared.append(Compared(named, metrics[label]["signature"], kept))
    return compared


def not_additive(sets: Sequence[Scored]) -> list[str]:
    """Labels of results that are no sums of statistics."""
    labels = [label for scored in sets for label in scored.summary["metrics"]]
    additive = {label for scored in sets for label in _additive(scored)}
    return [label for label in dict.fromkeys(labels) if label not in additive]


def _additive(scored: Scored) -> dict[str, Any]:
    entries: dict[str, Any] = scored.summary["metrics"]
    return {label: entry for label, entry in entries.items() if "options" in entry}


def _choose(metrics: dict[str, Any], wanted: Sequence[str]) -> dict[str, list[str]]:
    """Label of each wanted metric -> its wanted scores."""
    known = {*metrics, *(score for entry in metrics.values() for score in entry["scores"])}
    for name in wanted:
        if name not in known:
            raise ConfigError(f"--metric: there is no '{name}'{did_you_mean(name, known)}")
    chosen = {
        label: [
            score for score in entry["scores"] if not wanted or label in wanted or score in wanted
        ]
        for label, entry in metrics.items()
    }
    return {label: scores for label, scores in chosen.items() if scores}


def _require_same_metrics(baseline: Scored, system: Scored) -> None:
    ours, theirs = _additive(baseline), _additive(system)
    if ours.keys() == theirs.keys():
        return
    both = [label for label in ours if label in theirs]
    remedy = "score both with the same metrics"
    if both:
        remedy += f", or compare by what both have: --metric {' --metric '.join(both)}"
    raise ScoresError(
        f"{baseline.name} has the metrics {', '.join(ours)}, {system.name} has "
        f"{', '.join(theirs)}; {remedy}"
    )


def _require_alike(label: str, baseline: Scored, system: Scored) -> None:
    ours, theirs = _additive(baseline)[label], _additive(system).get(label)
    if theirs is None:
        raise ScoresError(f"{system.name} has no scores of {label}; score it with that metric too")
    left, right = _settings(ours), _settings(theirs)
    differ = [
        f"{key} is {left.get(key)} in {baseline.name} and {right.get(key)} in {system.name}"
        for key in dict.fromkeys((*left, *right))
        if left.get(key) != right.get(key)
    ]
    if differ:
        raise ScoresError(
            f"{label} was not computed alike: {'; '.join(differ)}; score both with the same "
            "settings and versions"
        )


def _settings(metric: dict[str, Any]) -> dict[str, Any]:
    """The parts of the signature, and the options that it does not show."""
    parts = dict(part.partition(":")[::2] for part in metric["signature"].split("|"))
    parts.pop(_REFERENCES, None)
    return {**parts, **{f"option {key}": value for key, value in metric["options"].items()}}


def _restore(label: str, metric: dict[str, Any], baseline: Scored) -> NamedMetric:
    name, options = metric["metric"], metric["options"]
    if name not in METRICS and ":" in name:  # a class of the person's own
        name, options = CUSTOM, {"metric": name, "options": options}
    try:
        (named,) = parse_metrics([{name: options}])
    except ConfigError as error:
        raise ScoresError(
            f"{baseline.name}: the metric {label} cannot be made here: {error}; leave it out with "
            "--metric"
        ) from error
    return NamedMetric(named.name, label.removeprefix(named.name), named.metric)
