"""A metric of the person's own, kept to what the others rely on.

Its code may raise anything, give a matrix of another shape or numbers that do not add up, and
change the lists that it is given, which other metrics read after it (and whose statistics would
then stand in the cache). So it gets copies, what it gives is checked, and what goes wrong is an
error that names the class, the method and the line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from pipeline.errors import ConfigError, TwophaseError, shown
from pipeline.score.dotted import failed
from pipeline.score.metrics.base import (
    Column,
    ColumnMetric,
    Floats,
    Metric,
    Scores,
    fault_of,
)

_COMMA = "; a tuple of one has a comma: (entry,)"


class Guarded(ColumnMetric):
    """``metric`` with checks; equals it otherwise.

    Args:
        metric: an instance of the person's class.
        path: how the person names the class.
        make: makes this object again; it pickles as that.

    Raises:
        ConfigError: an attribute that is missing or of a wrong kind; so do all methods, for what
            the class does.
    """

    def __init__(self, metric: Metric, path: str, make: tuple[Callable[..., Any], Any]) -> None:
        self._metric, self._path, self._make = metric, path, make
        self._check_attributes()
        self.options, self.columns = metric.options, tuple(metric.columns)
        self.headline = tuple(metric.headline)
        # Of the class elsewhere; here each object is of another one.
        self.scale, self.lower_is_better = metric.scale, metric.lower_is_better  # type: ignore[misc]
        self.needs = metric.needs if isinstance(metric, ColumnMetric) else ()  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        make, options = self._make
        return make, (options,)

    @property
    def kind(self) -> type[Metric]:
        return type(self._metric)

    def statistics(
        self,
        predictions: Sequence[str],
        references: Sequence[Sequence[str]],
        columns: Mapping[str, Floats] | None = None,
    ) -> Floats:
        copies: list[Any] = [list(predictions), [list(texts) for texts in references]]
        if self.needs:
            copies.append({name: values.copy() for name, values in (columns or {}).items()})
        given = self._call("statistics", *copies)
        try:
            matrix = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            self._refuse("statistics", f"{shown(given)}, which is no matrix of numbers")
        fault = fault_of(matrix, self.columns, len(predictions))
        if fault is not None:
            self._refuse("statistics", fault)
        return matrix

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        given = self._call("scores", list(totals), per_row=per_row)
        if not isinstance(given, Mapping) or tuple(given)[: len(self.headline)] != self.headline:
            self._refuse("scores", f"{shown(given)}; expected scores that begin with the headline")
        return {name: self._number(name, value) for name, value in given.items()}

    def example_scores(self, statistics: Floats) -> dict[str, Floats]:
        if self.kind.example_scores is Metric.example_scores:
            return super().example_scores(statistics)
        given = self._call("example_scores", statistics.copy())
        try:
            found = {name: np.asarray(given[name], np.float64) for name in self.headline}
        except (TypeError, ValueError, LookupError):
            self._refuse("example_scores", f"{shown(given)}; expected an array per headline score")
        for name, scores in found.items():
            if scores.shape != (len(statistics),) or np.isinf(scores).any():
                self._refuse("example_scores", f"no score per row for {name}, or an infinite one")
        return found

    def signature(self, references_per_row: int | None = None) -> str:
        given = self._call("signature", references_per_row)
        if not isinstance(given, str):
            self._refuse("signature", f"{shown(given)}, which is no text")
        return given

    def warnings(self, totals: Sequence[int | float]) -> list[str]:
        given = self._call("warnings", list(totals))
        if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
            self._refuse("warnings", f"{shown(given)}, which is no list of texts")
        return list(given)

    def _number(self, name: str, value: Any) -> float | int | None:
        if isinstance(value, np.generic):
            value = value.item()
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
            self._refuse("scores", f"{shown(value)} as {name}; expected a number, or None")
        return value

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        try:
            return getattr(self._metric, method)(*arguments, **options)
        except TwophaseError:
            raise
        except (Exception, SystemExit) as error:  # the person's code may raise anything
            raise failed(f"'{self._path}': {method}", error) from error

    def _refuse(self, method: str, gave: str) -> NoReturn:
        raise ConfigError(
            f"'{self._path}': {method} gave {gave}; docs/metrics.md says what it is to give, and "
            "pipeline.score.contract.check_contract checks it"
        )

    def _check_attributes(self) -> None:
        rules: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
            ("options", lambda _: True, "call super().__init__(options) in __init__"),
            # A Column is a tuple itself, and a text a sequence of texts: both without the comma.
            ("columns", _all_of(Column), f"a tuple of pipeline.score.metrics.base.Column{_COMMA}"),
            ("headline", _all_of(str), f"a tuple of names of scores{_COMMA}"),
            ("scale", _is_positive, "a number above 0"),
        )
        for name, holds, expected in rules:
            value = getattr(self._metric, name, ())
            if value == () and name != "scale":
                raise ConfigError(f"the class '{self._path}' has no {name}: {expected}")
            if not holds(value):
                raise ConfigError(
                    f"the class '{self._path}' has the {name} {shown(value)}; expected {expected}"
                )


def _all_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, list | tuple) and all(isinstance(one, kind) for one in value)
    )


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and 0 < value < math.inf
