"""``twophase grid``: models, checkpoints and data sets as one table."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline import atomic
from pipeline.compare.axes import find_axes, read_axes
from pipeline.compare.block import Sampling
from pipeline.compare.grid import compare_grid
from pipeline.compare.grid_result import Grid
from pipeline.compare.grid_table import to_csv, to_markdown, to_text
from stages.options import LocalPath, expected_errors
from stages.sampling import sampling_options

FORMATS = {"table": to_text, "markdown": to_markdown, "json": Grid.to_json, "csv": to_csv}
SUFFIXES = {".md": "markdown", ".json": "json", ".csv": "csv"}


@click.command("grid")
@click.argument("pattern")
@click.option("--axes", type=LocalPath(), help="YAML file: axis -> its values.")
@click.option("--across", metavar="AXIS", help="The axis of the data sets: columns, not rows.")
@click.option(
    "--baseline",
    metavar="VALUE/VALUE",
    help="The system that the others are compared with; the first unless given.",
)
@click.option("--metric", "metrics", multiple=True, help="A metric or score. May be repeated.")
@click.option("--allow-missing", is_flag=True, help="Leave cells without scores empty.")
@sampling_options
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="table")
@click.option(
    "--out",
    "outs",
    multiple=True,
    type=LocalPath(dir_okay=False),
    help="Write it there, too: .md, .json and .csv in their format. May be repeated.",
)
@expected_errors
def command(
    pattern: str,
    axes: Path | None,
    across: str | None,
    baseline: str | None,
    metrics: tuple[str, ...],
    allow_missing: bool,
    confidence: float,
    replicates: int,
    seed: int,
    form: str,
    outs: tuple[Path, ...],
) -> None:
    """Models, checkpoints and data sets as one table.

    PATTERN names the folders of scores, such as 'scores/{dataset}/{model}/{checkpoint}': in each
    pair of braces an axis. A row is a system; per data set and score there are the value, its
    interval, which system is best, and which differ from the baseline by more than chance.
    """
    found = compare_grid(
        find_axes(pattern) if axes is None else read_axes(pattern, axes),
        across=across,
        baseline=baseline,
        metrics=metrics,
        allow_missing=allow_missing,
        sampling=Sampling(confidence, replicates, seed),
    )
    for out in outs:
        atomic.write_text(out, FORMATS[SUFFIXES.get(out.suffix, "table")](found))
    click.echo(FORMATS[form](found), nl=False)


if __name__ == "__main__":
    command()
