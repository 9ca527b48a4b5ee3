"""``evaluate``: any module of Hugging Face ``evaluate``, from the hub or a script of the person's.

Such a module is no sum of statistics: it wants all texts together. So it is fed here, in the parent
process and in row order, after the sums are made, and its results stand beside the others without
an interval. ``compute`` holds all texts as Python lists (docs/metrics.md says how large that gets).
``evaluate`` brings datasets and pandas with it and is imported only when asked for.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Real
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.config import Config, parse_section
from pipeline.errors import ConfigError, MissingExtraError, TwophaseError
from pipeline.score.metrics import EVALUATE, Entry, differing_options, split_entry
from pipeline.score.reader import read_blocks

if TYPE_CHECKING:
    from pipeline.score.settings import Settings
    from pipeline.score.texts import Texts
    from pipeline.store.prediction_set import PredictionSet

_WHERE = f"score.metrics.{EVALUATE}"


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


@dataclass(frozen=True)
class Module:
    """An entry of ``score.metrics``.

    Attributes:
        label: such as ``evaluate[rouge]``; begins the names of its scores.
        options: its options.
    """

    label: str
    options: EvaluateOptions


def parse_modules(entries: Sequence[Entry]) -> tuple[Module, ...]:
    """The entries of ``evaluate`` in the list ``score.metrics``.

    Raises:
        ConfigError: an unknown option, a bad value, or the same module twice.
    """
    found = [
        parse_section(options, _WHERE, EvaluateOptions)
        for name, options in map(split_entry, entries)
        if name == EVALUATE
    ]
    modules: list[Module] = []
    for options in found:
        name = PurePath(options.path).stem
        twins = [
            other for other in found
            if other is not options and PurePath(other.path).stem == name
        ]  # fmt: skip
        if options in twins:
            raise ConfigError(
                f"{_WHERE}: '{options.path}' stands twice with the same options; remove one"
            )
        differing = differing_options(options, twins)
        modules.append(Module(f"{EVALUATE}[{','.join(filter(None, (name, differing)))}]", options))
    return tuple(modules)


def compute_modules(
    modules: Sequence[Module], settings: Settings, source: PredictionSet, seed: int
) -> dict[str, dict[str, Any]]:
    """Label -> entry of ``summary.json``, as ``summary`` has them for the metrics.

    Raises:
        MissingExtraError: ``evaluate`` is not installed.
        ConfigError: a module cannot be loaded, does not take texts, or has not the wanted results.
    """
    if not modules:
        return {}
    with tempfile.TemporaryDirectory(prefix="twophase-evaluate-") as cache:
        running = [_Running(module, cache, seed) for module in modules]
        for texts in read_blocks(settings, source):
            for module in running:
                module.add(texts)
        return {module.label: module.entry() for module in running}


class _Running:
    def __init__(self, module: Module, cache: str, seed: int) -> None:
        self.label = module.label
        self._options = module.options
        self._module = _load(module.options, cache)
        self._module.seed = seed  # else a module that draws gives other numbers each time
        self._takes_lists = _takes_lists(self._module.features)
        self._rows = 0

    def add(self, texts: Texts) -> None:
        references: Sequence[Any] = texts.references
        if not self._takes_lists:
            if max(map(len, references)) > 1:
                raise ConfigError(
                    f"{_WHERE}: '{self._options.path}' takes one reference per row, and this set "
                    "has several; use another metric"
                )
            references = [row[0] for row in references]
        self._rows += len(references)
        self._call("add_batch", predictions=texts.predictions, references=references)

    def entry(self) -> dict[str, Any]:
        keys = self._options.keys
        results = self._call("compute", **self._options.compute) if self._rows else {}
        values = _numbers(results, keys) if self._rows else dict.fromkeys(keys or ())
        if values is None:
            wanted = (
                f"keys asks for {', '.join(keys)}, each to be a number or a list of numbers"
                if keys
                else "none is a number; set keys to lists of numbers you want the means of"
            )
            raise ConfigError(
                f"{_WHERE}: the results of '{self._options.path}' are {', '.join(results)}; "
                f"{wanted}"
            )
        return {
            "metric": EVALUATE,
            "options": msgspec.json.decode(msgspec.json.encode(self._options)),
            "signature": self._signature(),
            "scale": 1.0,
            "scores": {
                f"{self.label}.{key}": None
                if value is None
                else {"value": value, "low": None, "high": None}
                for key, value in values.items()
            },
            "details": {},
            "undefined_rows": {},
            "undefined_replicates": {},
        }

    def _call(self, method: str, **arguments: Any) -> Any:
        try:
            return getattr(self._module, method)(**arguments)
        except Exception as error:  # the module's code may raise anything
            raise ConfigError(
                f"{_WHERE}: '{self._options.path}' failed in {method}: {type(error).__name__}: "
                f"{(str(error).splitlines() or [''])[0]}"
            ) from error

    def _signature(self) -> str:
        source = inspect.getsourcefile(type(self._module))
        digest = hashlib.sha256(Path(source).read_bytes()).hexdigest() if source else "none"
        compute = msgspec.json.encode(self._options.compute, order="sorted").decode()
        return "|".join(
            [
                f"module:{PurePath(self._options.path).stem}",
                f"config:{self._options.config_name or 'default'}",
                f"compute:{compute}",
                f"code:{digest[:12]}",
                f"version:evaluate-{version('evaluate')}",
            ]
        )


def _load(options: EvaluateOptions, cache: str) -> Any:
    try:
        import evaluate
    except ImportError:
        raise MissingExtraError(
            f"{_WHERE} needs the install extra [evaluate]: pip install 'twophase[evaluate]'"
        ) from None
    try:
        return evaluate.load(options.path, options.config_name, cache_dir=cache)
    except TwophaseError:
        raise
    except Exception as error:  # evaluate lets through whatever loading code raises
        raise ConfigError(
            f"{_WHERE}: '{options.path}' cannot be loaded: {type(error).__name__}: "
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
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, Sequence) and value and all(isinstance(one, Real) for one in value):
        return math.fsum(value) / len(value)
    return None
