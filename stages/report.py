"""``twophase report``: scores and telemetry as one page, or as a table on the screen."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from pipeline.extras import require_extra
from pipeline.report.formats import format_groups
from pipeline.report.results import read_results
from pipeline.report.table import format_lines, run_lines, score_lines
from pipeline.store.card import RUN_CARD, RunCard
from pipeline.store.place import open_place
from stages.options import (
    expected_errors,
    path_option,
    predictions_option,
    scores_option,
    telemetry_option,
)


@click.command("report")
@scores_option
@predictions_option
@telemetry_option
@path_option("--report", "report.html", "The page.")
@click.option("--show", is_flag=True, help="Print the table and write no page.")
@expected_errors
@click.pass_context
def command(
    context: click.Context,
    scores: Path,
    predictions: Path | str,
    telemetry: Path,
    report: Path,
    show: bool,
) -> None:
    """Tables and pictures as one HTML page; telemetry and run card are shown if at hand.

    With --scores, the two are those that are named, too: the default ones are of another run.
    """
    of_this_run = {
        name: context.get_parameter_source(name) is not ParameterSource.DEFAULT
        or context.get_parameter_source("scores") is ParameterSource.DEFAULT
        for name in ("predictions", "telemetry")
    }
    results = read_results(scores, telemetry if of_this_run["telemetry"] else None)
    if show:
        lines = score_lines(results.summary) + run_lines(results)
        click.echo(format_lines(lines, results.summary["confidence"]))
        if groups := format_groups(results.summary):
            click.echo(f"\n{groups}")
        return
    require_extra("report", "report", ("jinja2", "matplotlib"))
    from pipeline.report.page import write_page

    place = open_place(predictions)
    at_hand = of_this_run["predictions"] and RUN_CARD in place.sizes()
    card = RunCard.read(place) if at_hand else None
    write_page(report, results, card)
    click.echo(f"wrote {report}")


if __name__ == "__main__":
    command()
