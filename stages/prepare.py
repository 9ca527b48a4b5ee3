"""``twophase prepare``: make the data set one Parquet file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pipeline.config import load_section
from pipeline.prepare.config import PrepareConfig
from stages.options import (
    examples_option,
    expected_errors,
    needs_phase_one,
    params_options,
    path_option,
)


@click.command("prepare")
@examples_option
@path_option("--source", "data/source", "Link to the data set, so that DVC sees it change.")
@params_options
@expected_errors
@needs_phase_one
def command(examples: Path, source: Path, params: Path, overrides: tuple[str, ...]) -> None:
    """Make the data set one Parquet file: rows, ids, references and the input columns."""
    from pipeline.prepare.prepare import prepare

    config = load_section(params, "prepare", PrepareConfig, overrides)
    prepared = prepare(config, examples, source, announce=click.echo, progress=sys.stderr.isatty())
    tally = prepared.tally
    references = str(tally.fewest_references)
    if tally.most_references != tally.fewest_references:
        references += f" to {tally.most_references}"
    click.echo(
        f"{examples}: {tally.rows} rows of {prepared.where}, {references} reference(s) per row; "
        f"columns {', '.join(prepared.columns)}"
    )


if __name__ == "__main__":
    command()
