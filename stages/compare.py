"""``twophase compare``: scored sets against a baseline."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline import atomic
from pipeline.compare.compare import compare
from pipeline.compare.result import Comparison
from pipeline.compare.table import to_markdown, to_text
from pipeline.score.interval import MAX_REPLICATES
from stages.options import LocalPath, expected_errors

FORMATS = {"table": to_text, "json": Comparison.to_json, "markdown": to_markdown}
_FOLDER = LocalPath()


@click.command("compare")
@click.argument("baseline", type=_FOLDER)
@click.argument("systems", type=_FOLDER, nargs=-1, required=True)
@click.option("--metric", "metrics", multiple=True, help="A metric or score. May be repeated.")
@click.option("--common", is_flag=True, help="Compare the examples that all sets have.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Level of the intervals.",
)
@click.option(
    "--replicates",
    type=click.IntRange(1, MAX_REPLICATES),
    default=1000,
    show_default=True,
    help="Of the bootstrap.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="Of the bootstrap.",
)
@click.option(
    "--top", type=click.IntRange(0), default=3, show_default=True, help="Changed rows per score."
)
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="table")
@click.option("--out", type=LocalPath(dir_okay=False), help="Write it there.")
@expected_errors
def command(
    baseline: Path,
    systems: tuple[Path, ...],
    metrics: tuple[str, ...],
    common: bool,
    confidence: float,
    replicates: int,
    seed: int,
    top: int,
    form: str,
    out: Path | None,
) -> None:
    """Compare folders of scores, example by example, with the first.

    Per score: the difference, its paired-bootstrap interval and p-value, how many examples were
    won, tied and lost, and those that changed most.
    """
    found = compare(
        baseline,
        systems,
        metrics=metrics,
        common=common,
        confidence=confidence,
        replicates=replicates,
        seed=seed,
        top=top,
    )
    text = FORMATS[form](found)
    if out is None:
        click.echo(text, nl=False)
    else:
        atomic.write_text(out, text)
        click.echo(f"wrote {out}")


if __name__ == "__main__":
    command()
