"""``report.html``: one file that opens anywhere, without a link to anything."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from pipeline import __version__, atomic
from pipeline.report.formats import group_rows
from pipeline.report.pictures import memory_per_chunk
from pipeline.report.results import Results
from pipeline.report.table import run_lines, score_lines
from pipeline.store.card import RunCard


def write_page(path: Path, results: Results, card: RunCard | None) -> None:
    """Write the page.

    Args:
        path: where.
        results: scores and telemetry.
        card: the run card of the predictions; None where they are not at hand.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = files("pipeline.report").joinpath("page.html").read_text(encoding="utf-8")
    text = environment.from_string(template).render(
        version=__version__,
        summary=results.summary,
        scores=score_lines(results.summary),
        groups=group_rows(results.summary),
        run=run_lines(results),
        card=card,
        memory=memory_per_chunk(results),
    )
    atomic.write_text(path, text)
