"""One module of Hugging Face ``evaluate``: loaded, fed, asked for its results.

``evaluate`` brings datasets and pandas with it and is imported when a module is loaded.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from numbers import Real
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np

from pipeline.config import Config
from pipeline.errors import ConfigError, TwophaseError, listed, shown
from pipeline.extras import require_extra
from pipeline.score.dotted import failed
from pipeline.score.metrics import EVALUATE
from pipeline.score.texts import Texts

_PLAIN = '{}[]",: '  # what JSON needs and a signature does not
WHERE = f"score.metrics.{EVALUATE}"


class EvaluateOptions(Config, frozen=True):
    """Options of ``evaluate``.

    Attributes:
        path: name on the hub, or path of a local script or its folder.
        config_name: configuration of the module.
        compute: arguments for ``compute`` beside the texts.
        keys: results to keep; null keeps each that is a number. A list of numbers becomes its mean.
    """

    path: str
    config_name: str | None = None
    compute: dict[str, Any] = msgspec.field(default_factory=dict)
    keys: tuple[str, ...] | None = None


class EvaluateModule:
    """A module that is being fed.

    Args:
        options: which one.
        cache: folder for the texts, until ``results``.
        seed: of a module that draws.

    Raises:
        MissingExtraError: ``evaluate`` is not installed.
        ConfigError: the module cannot be loaded.
    """

    def __init__(self, options: EvaluateOptions, cache: str, seed: int) -> None:
        self._options = options
        self._module = _load(options, cache)
        self._module.seed = seed  # else a module that draws gives other numbers each time
        self._takes_lists = _takes_lists(self._module.features)
        self._rows = 0

    def add(self, texts: Texts) -> None:
        """Feed it some rows, in their order.

        Raises:
            ConfigError: it does not take texts, or not several references per row.
        """
        references: Sequence[Any] = texts.references
        if not self._takes_lists:
            if any(len(row) > 1 for row in references):
                raise ConfigError(
                    f"{WHERE}: '{self._options.path}' takes one reference per row, and this set "
                    "has several; use another metric"
                )
            references = [row[0] for row in references]
        self._rows += len(references)
        self._call("add_batch", predictions=texts.predictions, references=references)

    def results(self) -> dict[str, float | None]:
        """The wanted results; None where undefined, as everything without rows is.

        Raises:
            ConfigError: the module fails, or has not the wanted results.
        """
        keys = self._options.keys
        if not self._rows:
            return dict.fromkeys(keys or ())
        results = self._call("compute", **self._options.compute)
        if not isinstance(results, Mapping):
            raise ConfigError(
                f"{WHERE}: '{self._options.path}' gave {shown(results)}; its _compute is to give "
                "results by their names"
            )
        values = _numbers(results, keys)
        if values is None:
            wanted = (
                f"keys asks for {', '.join(keys)}, each to be a number or a list of numbers"
                if keys
                else "none is a number; set keys to lists of numbers you want the means of"
            )
            names = listed(map(str, results)) or "none"
            raise ConfigError(
                f"{WHERE}: the results of '{self._options.path}' are {names}; {wanted}"
            )
        return values

    def signature(self) -> str:
        """Its settings, a hash of its code, and the version of ``evaluate``."""
        source = inspect.getsourcefile(type(self._module))
        digest = hashlib.sha256(Path(source).read_bytes()).hexdigest() if source else "none"
        compute = msgspec.json.encode(self._options.compute, order="sorted").decode()
        return "|".join(
            [
                f"module:{PurePath(self._options.path).stem}",
                f"config:{self._options.config_name or 'default'}",
                f"compute:{quote(compute, safe=_PLAIN)}",
                f"code:{digest[:12]}",
                f"version:evaluate-{version('evaluate')}",
            ]
        )

    def _call(self, method: str, **arguments: Any) -> Any:
        try:
            return getattr(self._module, method)(**arguments)
        except (Exception, SystemExit) as error:  # the module's code may raise anything
            raise failed(f"{WHERE}: '{self._options.path}': {method}", error) from error


def _load(options: EvaluateOptions, cache: str) -> Any:
    require_extra(WHERE, "evaluate", ["evaluate"])
    import evaluate

    try:
        return evaluate.load(options.path, options.config_name, cache_dir=cache)
    except TwophaseError:
        raise
    except Exception as error:  # evaluate lets through whatever loading code raises
        raise ConfigError(
            f"{WHERE}: '{options.path}' cannot be loaded: {type(error).__name__}: "
            f"{(str(error).splitlines() or [''])[0]}"
        ) from error


def _takes_lists(features: Any) -> bool:
    """Whether the module takes a list of references per row."""
    choices = features if isinstance(features, list) else [features]
    return any(type(choice["references"]).__name__ != "Value" for choice in choices)


def _numbers(
    results: Mapping[str, Any], keys: Sequence[str] | None
) -> dict[str, float | None] | None:
    """The wanted results as floats; None when there is none or one is no number."""
    wanted = keys or [key for key, value in results.items() if isinstance(value, Real)]
    values = {key: _number(results.get(key)) for key in wanted}
    if not values or any(value is None for value in values.values()):
        return None
    return {
        key: value if math.isfinite(value) else None
        for key, value in values.items()
        if value is not None
    }


def _number(value: Any) -> float | None:
    """A number, or the mean of a list of numbers; None for anything else."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, Sequence) and value and all(isinstance(one, Real) for one in value):
        return math.fsum(value) / len(value)
    return None
