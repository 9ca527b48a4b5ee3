"""``evaluate``: any module of Hugging Face ``evaluate``, from the hub or a script of the person's.

Such a module is no sum of statistics: it wants all texts together. So it is fed here, in the parent
process and in row order, after the sums are made, and its results stand beside the others without
an interval. ``compute`` holds all texts as Python lists (docs/metrics.md says how large that gets).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.config import parse_section
from pipeline.errors import ConfigError
from pipeline.score.evaluate_module import WHERE, EvaluateModule, EvaluateOptions
from pipeline.score.metrics import EVALUATE, Entry, differing_options, split_entry
from pipeline.score.reader import read_blocks

if TYPE_CHECKING:
    from pipeline.score.settings import Settings
    from pipeline.store.prediction_set import PredictionSet


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
        parse_section(options, WHERE, EvaluateOptions)
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
                f"{WHERE}: '{options.path}' stands twice with the same options; remove one"
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
        running = [EvaluateModule(module.options, cache, seed) for module in modules]
        for texts in read_blocks(settings, source):
            for fed in running:
                fed.add(texts)
        return {
            module.label: _entry(module, fed) for module, fed in zip(modules, running, strict=True)
        }


def _entry(module: Module, fed: EvaluateModule) -> dict[str, Any]:
    return {
        "metric": EVALUATE,
        "options": msgspec.json.decode(msgspec.json.encode(module.options)),
        "signature": fed.signature(),
        "scale": 1.0,
        "scores": {
            f"{module.label}.{key}": None
            if value is None
            else {"value": value, "low": None, "high": None}
            for key, value in fed.results().items()
        },
        "details": {},
        "undefined_rows": {},
        "undefined_replicates": {},
    }
