"""``twophase verify``: every fault of a prediction set."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pipeline.inspect.verify import verify
from pipeline.store.card import RunCard
from stages.options import SetPath, expected_errors


@click.command("verify")
@click.argument("predictions", type=SetPath(), default="data/predictions")
@expected_errors
def command(predictions: Path | str) -> None:
    """Read every page of a prediction set and name each fault; exit with 1 if there is any.

    Checks run card, seal, checksums, schema, row numbers, unique ids, and that every prediction
    decodes. What score has a rule for, such as empty predictions, is noted and is no fault.
    """
    from tqdm import tqdm

    rows = RunCard.read(predictions).rows
    with tqdm(total=rows, unit="row", desc="verify", disable=None) as bar:
        verdict = verify(predictions, progress=bar.update)
    for note in verdict.notes:
        click.echo(f"note: {note}")
    for fault in verdict.faults:
        click.echo(f"fault: {fault}")
    if verdict.faults:
        number = len(verdict.faults)
        click.echo(f"{predictions}: {number} fault{'s' if number > 1 else ''}")
        sys.exit(1)
    click.echo(f"{predictions}: {verdict.rows} rows in {verdict.chunks} chunks, no fault")


if __name__ == "__main__":
    command()
