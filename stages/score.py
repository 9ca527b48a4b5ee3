"""``twophase score``: phase two, on any CPU."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.report.table import format_lines, score_lines
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
@params_options
@expected_errors
def command(
    predictions: Path,
    scores: Path,
    metrics: Path,
    plots: Path,
    allow_partial: bool,
    params: Path,
    overrides: tuple[str, ...],
) -> None:
    """Phase two: decode and score, on any CPU.

    Reads the prediction set and nothing else; writes the scores of each example with summary.json,
    histograms for `dvc plots`, and the headline scores for `dvc metrics`.
    """
    from tqdm import tqdm

    config = read_section(params, "score", ScoreConfig, overrides)
    rows = RunCard.read(predictions).rows
    with tqdm(total=rows, unit="row", desc="score", disable=None) as bar:
        summary = score(
            predictions,
            scores,
            metrics,
            config,
            plots=plots,
            allow_partial=allow_partial,
            progress=bar.update,
        )
    click.echo(format_lines(score_lines(summary), summary["confidence"]))


if __name__ == "__main__":
    command()
