"""``custom``: a metric of the person's own, ``package.module:Class``; docs/metrics.md shows one.

The class derives from ``metrics.base.Metric`` and obeys ``contract.check_contract``.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from pipeline.config import Config, parse_section
from pipeline.errors import ConfigError, TwophaseError, shown
from pipeline.score.dotted import import_dotted
from pipeline.score.metrics.base import Column, Floats, Metric

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
    except Exception as error:  # the person's code may raise anything
        raise ConfigError(
            f"{_WHERE}.metric: '{options.metric}' cannot be made: {type(error).__name__}: {error}"
        ) from error
    for name, kind_of_entry in (("columns", Column), ("headline", str)):
        entries = getattr(metric, name, ())
        if not entries:
            raise ConfigError(f"{_WHERE}.metric: the class '{options.metric}' has no {name}")
        # A Column is a tuple itself, and a text a sequence of texts: both without the comma.
        if type(entries) is not tuple or not all(isinstance(e, kind_of_entry) for e in entries):
            raise ConfigError(
                f"{_WHERE}.metric: {name} of '{options.metric}' is {shown(entries)}, not a tuple "
                f"of {kind_of_entry.__name__}; a tuple of one has a comma: (entry,)"
            )
    _check_scores(metric, options.metric)
    return metric


def check_statistics(name: str, metric: Metric, statistics: Floats, rows: int) -> None:
    """Check what ``statistics`` of a metric of the person's own gave for ``rows`` rows.

    Raises:
        ConfigError: another shape, a value that is not finite, or a fraction in an integer column,
            which would be cut off.
    """
    where, expected = f"{_WHERE}.metric: statistics() of '{name}'", (rows, len(metric.columns))
    matrix = np.asarray(statistics, dtype=np.float64)
    if matrix.shape != expected:
        raise ConfigError(f"{where} gives {matrix.shape}, not (rows, columns) = {expected}")
    for column, values in zip(metric.columns, matrix.T, strict=True):
        if not np.isfinite(values).all():
            raise ConfigError(f"{where} gives infinity or NaN in {column.name}")
        if column.integer and (values % 1).any():
            raise ConfigError(
                f"{where} gives a fraction in {column.name}; make it Column(…, integer=False)"
            )


def _check_scores(metric: Metric, name: str) -> None:
    zeros = [0] * len(metric.columns)
    where = f"{_WHERE}.metric: scores({zeros}) of '{name}', which is asked for no rows,"
    try:
        scores = metric.scores(zeros)
    except Exception as error:  # the person's code may raise anything
        raise ConfigError(
            f"{where} raises {type(error).__name__}: {error}; give None where it is undefined"
        ) from error
    missing = [key for key in metric.headline if key not in scores]
    if missing:
        raise ConfigError(f"{where} lacks {', '.join(missing)} of headline; it has {list(scores)}")
