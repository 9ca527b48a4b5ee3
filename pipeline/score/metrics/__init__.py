"""The metrics there are, and the list ``score.metrics`` as metrics with their names.

A new metric is a file here and a line in ``METRICS``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pipeline.config import parse_section
from pipeline.errors import ConfigError, did_you_mean
from pipeline.score.metrics.base import Column, Metric
from pipeline.score.metrics.bleu import Bleu
from pipeline.score.metrics.rouge import Rouge

METRICS: dict[str, type[Metric]] = {
    "rouge": Rouge,
    "bleu": Bleu,
}

Entry = str | Mapping[str, Mapping[str, Any] | None]


@dataclass(frozen=True)
class NamedMetric:
    """A metric and how it is told from another of its kind.

    Attributes:
        name: its key in ``METRICS``.
        suffix: empty, or the options in which it differs, such as ``[stemmer=true]``.
        metric: the metric.
    """

    name: str
    suffix: str
    metric: Metric

    @property
    def label(self) -> str:
        """Its key in ``summary.json``."""
        return self.name + self.suffix

    @property
    def headline(self) -> tuple[str, ...]:
        """Headline scores, as they are called in the results."""
        return tuple(self.rename(name) for name in self.metric.headline)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Statistics, as their columns are called in ``scores/``."""
        return tuple(
            column._replace(name=self.rename(column.name)) for column in self.metric.columns
        )

    def rename(self, name: str) -> str:
        """``rouge1.fmeasure`` → ``rouge1[stemmer=true].fmeasure``."""
        score, dot, statistic = name.partition(".")
        return f"{score}{self.suffix}{dot}{statistic}"


def parse_metrics(entries: Sequence[Entry]) -> tuple[NamedMetric, ...]:
    """The list ``score.metrics``: names, or one-key maps of a name to its options.

    Raises:
        ConfigError: no metric, an unknown metric or option, a bad value, or the same metric twice.
    """
    if not entries:
        raise ConfigError(f"score.metrics is empty: name a metric (known: {', '.join(METRICS)})")
    named = [_parse_entry(entry) for entry in entries]
    metrics: list[NamedMetric] = []
    for name, metric in named:
        twins = [other for kind, other in named if kind == name and other is not metric]
        if any(twin.options == metric.options for twin in twins):
            raise ConfigError(
                f"score.metrics: '{name}' stands twice with the same options; remove one"
            )
        metrics.append(NamedMetric(name, _suffix(metric, twins), metric))
    return tuple(metrics)


def _parse_entry(entry: Entry) -> tuple[str, Metric]:
    if isinstance(entry, str):
        name, options = entry, None
    elif len(entry) == 1:
        name, options = next(iter(entry.items()))
    else:
        raise ConfigError(
            "score.metrics: expected a name or a map of one name to its options, got keys "
            f"{list(entry)}"
        )
    if name not in METRICS:
        raise ConfigError(f"score.metrics: unknown metric '{name}'{did_you_mean(name, METRICS)}")
    kind = METRICS[name]
    return name, kind(parse_section(options or {}, f"score.metrics.{name}", kind.options_type))


def _suffix(metric: Metric, twins: Sequence[Metric]) -> str:
    """The options in which ``metric`` differs from a twin and from the default."""
    default = metric.options_type()
    shown = []
    for field in msgspec.structs.fields(metric.options):
        value = getattr(metric.options, field.name)
        varies = any(getattr(twin.options, field.name) != value for twin in twins)
        if varies and value != getattr(default, field.name):
            shown.append(f"{field.name}={_shown(value)}")
    return f"[{','.join(shown)}]" if shown else ""


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "+".join(map(_shown, value))
    return "null" if value is None else str(value)
