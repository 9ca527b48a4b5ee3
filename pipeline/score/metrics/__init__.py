"""The metrics there are, and the list ``score.metrics`` as metrics with their names.

A new metric is a file here and a line in ``METRICS``. Two names stand for something else than one
class: ``custom`` for a class of the person's own, and ``evaluate`` for what is no sum of statistics
at all (``pipeline.score.modules``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pipeline.config import Config, parse_section
from pipeline.errors import ConfigError, did_you_mean
from pipeline.schema import RESERVED_COLUMNS
from pipeline.score.metrics.base import Column, Metric
from pipeline.score.metrics.bleu import Bleu
from pipeline.score.metrics.chrf import Chrf
from pipeline.score.metrics.custom import CustomOptions, load_custom
from pipeline.score.metrics.edit_similarity import EditSimilarity
from pipeline.score.metrics.error_rate import Cer, Wer
from pipeline.score.metrics.exact_match import ExactMatch
from pipeline.score.metrics.length import Length
from pipeline.score.metrics.perplexity import Perplexity
from pipeline.score.metrics.repetition import Repetition
from pipeline.score.metrics.rouge import Rouge
from pipeline.score.metrics.ter import Ter
from pipeline.score.metrics.token_accuracy import TokenAccuracy
from pipeline.score.metrics.token_f1 import TokenF1

METRICS: dict[str, type[Metric]] = {
    "rouge": Rouge,
    "bleu": Bleu,
    "chrf": Chrf,
    "ter": Ter,
    "wer": Wer,
    "cer": Cer,
    "exact_match": ExactMatch,
    "token_f1": TokenF1,
    "edit_similarity": EditSimilarity,
    "length": Length,
    "repetition": Repetition,
    "perplexity": Perplexity,
    "token_accuracy": TokenAccuracy,
}
CUSTOM = "custom"
EVALUATE = "evaluate"
NAMES = (*METRICS, CUSTOM, EVALUATE)
# Where a name alone is not enough, a text after it is this option.
_MAIN_OPTION = {CUSTOM: "metric", EVALUATE: "path"}

Entry = str | Mapping[str, Mapping[str, Any] | str | None]


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

    Entries of ``evaluate`` are left to ``modules.parse_modules``.

    Raises:
        ConfigError: no metric, an unknown metric or option, a bad value, the same metric twice, or
            two metrics with scores of one name.
    """
    if not entries:
        raise ConfigError(f"score.metrics is empty: name a metric (known: {', '.join(NAMES)})")
    split = [split_entry(entry) for entry in entries]
    named = [_parse(name, options) for name, options in split if name != EVALUATE]
    metrics: list[NamedMetric] = []
    for name, metric in named:
        twins = [other for kind, other in named if kind == name and other is not metric]
        if any(twin.options == metric.options for twin in twins):
            raise ConfigError(
                f"score.metrics: '{name}' stands twice with the same options; remove one"
            )
        suffix = differing_options(metric.options, [twin.options for twin in twins])
        metrics.append(NamedMetric(name, suffix and f"[{suffix}]", metric))
    _check_names(metrics)
    return tuple(metrics)


def split_entry(entry: Entry) -> tuple[str, Mapping[str, Any]]:
    """The name of a metric and its options.

    Raises:
        ConfigError: neither a name nor a map of one, or an unknown name.
    """
    if isinstance(entry, str):
        name, options = entry, None
    elif len(entry) == 1:
        name, options = next(iter(entry.items()))
    else:
        raise ConfigError(
            "score.metrics: expected a name or a map of one name to its options, got keys "
            f"{list(entry)}"
        )
    if name not in NAMES:
        raise ConfigError(f"score.metrics: unknown metric '{name}'{did_you_mean(name, NAMES)}")
    if isinstance(options, str):
        if name not in _MAIN_OPTION:
            raise ConfigError(f"score.metrics.{name}: expected a map of options, got '{options}'")
        return name, {_MAIN_OPTION[name]: options}
    return name, options or {}


def _parse(name: str, options: Mapping[str, Any]) -> tuple[str, Metric]:
    if name == CUSTOM:
        custom = parse_section(options, f"score.metrics.{name}", CustomOptions)
        return custom.metric, load_custom(custom)
    kind = METRICS[name]
    return name, kind(parse_section(options, f"score.metrics.{name}", kind.options_type))


def differing_options(options: Config, others: Sequence[Config]) -> str:
    """What tells ``options`` from ``others`` and is not the default: ``stemmer=true,…``."""
    shown = []
    for field in msgspec.structs.fields(options):
        value = getattr(options, field.name)
        varies = any(getattr(other, field.name) != value for other in others)
        if varies and value != _default(field):
            shown.append(f"{field.name}={_shown(value)}")
    return ",".join(shown)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    has_factory = field.default_factory is not msgspec.NODEFAULT
    return field.default_factory() if has_factory else field.default


def _check_names(metrics: Sequence[NamedMetric]) -> None:
    owners: dict[str, str] = {}
    for named in metrics:
        for name in (*named.headline, *(column.name for column in named.columns)):
            if name in owners:
                raise ConfigError(
                    f"score.metrics: '{owners[name]}' and '{named.label}' both have a score or "
                    f"statistic '{name}'; rename one of them"
                )
            if name in RESERVED_COLUMNS:
                raise ConfigError(
                    f"score.metrics: '{named.label}' has a score or statistic '{name}', which is "
                    "the name of a column of every set; rename it"
                )
            owners[name] = named.label


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "+".join(map(_shown, value))
    if isinstance(value, Mapping):
        return "+".join(f"{key}:{_shown(entry)}" for key, entry in value.items())
    return "null" if value is None else str(value)
