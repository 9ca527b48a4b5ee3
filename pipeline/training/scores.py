"""A sealed set → the metrics that the trainer logs: phase two, in this process."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.config import parse_section
from pipeline.errors import ConfigError
from pipeline.local import remove
from pipeline.score import run
from pipeline.score.columns import require_columns
from pipeline.score.config import ScoreConfig
from pipeline.score.folder import SUMMARY, check_target
from pipeline.score.metrics import parse_metrics
from pipeline.score.modules import parse_modules
from pipeline.score.summary import flatten
from pipeline.store.card import RunCard
from pipeline.training.kind import Kind

Entry = str | Mapping[str, Mapping[str, Any] | str | None]


class Scorer:
    """Scores evaluations.

    Args:
        metrics: what ``score.metrics`` in params.yaml takes.
        options: other keys of the section ``score``; intervals are off unless it says otherwise.

    Raises:
        ConfigError: an unknown metric or option.
    """

    def __init__(self, metrics: Sequence[Entry], options: Mapping[str, Any]) -> None:
        if isinstance(metrics, str):
            raise ConfigError(f"score: expected a list of metrics, got {metrics!r}: [{metrics!r}]")
        values = {"confidence": 0.0, **options, "metrics": list(metrics)}
        self._config = parse_section(values, "score", ScoreConfig)
        self._named = parse_metrics(self._config.metrics)
        parse_modules(self._config.metrics)
        self._said: set[str] = set()

    def check(self, kind: Kind) -> None:
        """Check that evaluations of ``kind`` have what the metrics need.

        Raises:
            ConfigError: names the metric and the columns.
        """
        card = RunCard.plan(inputs={}, rows=0, chunk_rows=1, versions={}, optional=kind.optional)
        require_columns(self._named, card)

    def score(self, predictions: Path) -> dict[str, float]:
        """The headline scores of a set; an undefined one is left out.

        Writes ``<set>-scores/`` and ``<set>-metrics.json`` beside the set.

        Raises:
            TwophaseError: see ``pipeline.score.run.score``.
        """
        summary = run.score(
            predictions, scores_folder(predictions), metrics_file(predictions), self._config
        )
        # Once, not at each evaluation. Python forgets what it has shown whenever filters change,
        # as libraries change them at each step.
        for warning in summary["warnings"]:
            if warning not in self._said:
                self._said.add(warning)
                warnings.warn(warning, stacklevel=2)
        flat = flatten(summary)
        return {name: flat[name] for name in flat if name not in ("rows", "complete")}


def scores_folder(predictions: Path) -> Path:
    """Where the scores of a set lie."""
    return predictions.with_name(f"{predictions.name}-scores")


def metrics_file(predictions: Path) -> Path:
    """Where the headline scores of a set lie."""
    return predictions.with_name(f"{predictions.name}-metrics.json")


def remove_scores(predictions: Path) -> None:
    """Remove scores that a former evaluation of the same step left: they are of other rows.

    Raises:
        ScoresError: something else lies there.
    """
    folder = scores_folder(predictions)
    check_target(folder)
    if (folder / SUMMARY).exists():
        remove(folder)
    remove(metrics_file(predictions))
