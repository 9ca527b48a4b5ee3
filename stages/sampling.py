"""Options of the commands that compare: how differences are resampled."""

from __future__ import annotations

import click

from pipeline.score.interval import MAX_REPLICATES
from stages.options import Command


def sampling_options(function: Command) -> Command:
    """How differences are resampled: ``confidence``, ``replicates`` and ``seed``."""
    level = click.FloatRange(0, 1, min_open=True, max_open=True)
    replicates = click.IntRange(1, MAX_REPLICATES)
    seed = click.IntRange(0, 2**63 - 1)
    for flag, kind, default, what in (
        ("--seed", seed, 0, "Of the bootstrap."),
        ("--replicates", replicates, 1000, "Of the bootstrap."),
        ("--confidence", level, 0.95, "Level of the differences' intervals."),
    ):
        function = click.option(flag, type=kind, default=default, show_default=True, help=what)(
            function
        )
    return function
