"""``custom``: a metric of the person's own, ``package.module:Class``; docs/metrics.md shows one.

The class derives from ``metrics.base.Metric`` and obeys ``contract.check_contract``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pipeline.config import Config, parse_section
from pipeline.errors import ConfigError, TwophaseError
from pipeline.score.dotted import import_dotted
from pipeline.score.metrics.base import Metric
from pipeline.score.metrics.guarded import Guarded

_WHERE = "score.metrics.custom"


class CustomOptions(Config, frozen=True):
    """Options of ``custom``.

    Attributes:
        metric: ``package.module:Class``, from the working directory or installed.
        options: the options of that class, as its ``options_type`` has them.
    """

    metric: str
    options: dict[str, Any] = msgspec.field(default_factory=dict)


def load_custom(options: CustomOptions) -> Metric:
    """The metric that ``options`` name.

    Raises:
        ConfigError: it cannot be imported, is not a ``Metric``, or refuses its options.
    """
    kind = import_dotted(options.metric, f"{_WHERE}.metric")
    if not (isinstance(kind, type) and issubclass(kind, Metric)):
        raise ConfigError(
            f"{_WHERE}.metric: '{options.metric}' is {kind!r}, not a class derived from "
            "pipeline.score.metrics.base.Metric"
        )
    missing = sorted(kind.__abstractmethods__)
    if missing:
        raise ConfigError(
            f"{_WHERE}.metric: the class '{options.metric}' lacks {', '.join(missing)}; "
            "docs/metrics.md shows a whole metric"
        )
    parsed = parse_section(options.options, f"{_WHERE}.options", kind.options_type)
    try:
        metric = kind(parsed)
    except TwophaseError:
        raise
    except (Exception, SystemExit) as error:  # the person's code may raise anything
        raise ConfigError(
            f"{_WHERE}.metric: '{options.metric}' cannot be made: {type(error).__name__}: {error}"
        ) from error
    try:
        guarded = Guarded(metric, options.metric, (load_custom, options))
        guarded.scores([0] * len(guarded.columns))  # of no rows, before an hour of statistics
        return guarded
    except ConfigError as error:
        raise ConfigError(f"{_WHERE}.metric: {error}") from None
