"""``twophase score``: phase two, on any CPU."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import get_args

import click

from pipeline.report.formats import Format, format_scores, read_previous
from pipeline.score.config import ScoreConfig
from pipeline.score.run import score
from pipeline.store.card import RunCard
from stages.options import (
    expected_errors,
    metrics_option,
    params_options,
    path_option,
    predictions_option,
    read_section,
    scores_option,
)


@click.command("score")
@predictions_option
@scores_option
@metrics_option
@path_option("--plots", "data/plots", "How the scores of single examples are spread.")
@click.option("--allow-partial", is_flag=True, help="Score what is there if chunks are missing.")
@path_option("--cache", "data/.cache/statistics", "Where statistics are remembered.")
@click.option("--no-cache", is_flag=True, help="Compute all; remember nothing.")
@click.option(
    "--format",
    type=click.Choice(get_args(Format)),
    default="table",
    show_default=True,
    help="Of what is printed.",
)
@params_options
@expected_errors
def command(
    predictions: Path | str,
    scores: Path,
    metrics: Path,
    plots: Path,
    allow_partial: bool,
    cache: Path,
    no_cache: bool,
    format: Format,
    params: Path,
    overrides: tuple[str, ...],
) -> None:
    """Phase two: decode and score, on any CPU.

    Reads the prediction set and nothing else; writes the scores of each example with summary.json,
    histograms for `dvc plots`, and the headline scores for `dvc metrics`. Prints the scores, and
    how they differ from those that were in the file of headline scores before.
    """
    from tqdm import tqdm

    config = read_section(params, "score", ScoreConfig, overrides)
    previous = read_previous(metrics)
    if previous is None and metrics.exists():
        click.echo(f"{metrics} holds no scores to compare with", err=True)
    rows = RunCard.read(predictions).rows
    with (
        tqdm(total=rows, unit="row", desc="score", disable=None) as bar,
        redirect_stdout(sys.stderr),  # what a person's metric prints is not among the results
    ):
        summary = score(
            predictions,
            scores,
            metrics,
            config,
            plots=plots,
            allow_partial=allow_partial,
            cache=None if no_cache else cache,
            progress=bar.update,
        )
    for warning in summary["warnings"]:
        click.echo(f"warning: {warning}", err=True)
    click.echo(format_scores(summary, previous, format))


if __name__ == "__main__":
    command()
