"""``twophase compare``: scored sets against a baseline."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline import atomic
from pipeline.compare.compare import compare
from pipeline.compare.result import Comparison
from pipeline.compare.table import to_markdown, to_text
from stages.options import LocalPath, expected_errors
from stages.sampling import sampling_options

FORMATS = {"table": to_text, "json": Comparison.to_json, "markdown": to_markdown}
_FOLDER = LocalPath()


@click.command("compare")
@click.argument("baseline", type=_FOLDER)
@click.argument("systems", type=_FOLDER, nargs=-1, required=True)
@click.option("--metric", "metrics", multiple=True, help="A metric or score. May be repeated.")
@click.option("--common", is_flag=True, help="Compare the examples that all sets have.")
@sampling_options
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
