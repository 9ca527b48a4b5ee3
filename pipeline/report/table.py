"""The results as a small table: what ``score`` and ``make repro`` print, and the page shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from pipeline.report.results import Results
from pipeline.schema import END, FORCED, INGESTED


class Line(NamedTuple):
    """One line of the table.

    Attributes:
        name: of the score or fact.
        value: as text.
        interval: as text; empty where there is none.
    """

    name: str
    value: str
    interval: str = ""


def score_lines(summary: dict[str, Any]) -> list[Line]:
    """Headline scores with their intervals, and what a reader has to know beside them."""
    lines = [
        score_line(name, entry, metric["scale"])
        for metric in summary["metrics"].values()
        for name, entry in metric["scores"].items()
    ]
    rows, expected = summary["rows"], summary["expected_rows"]
    lines.append(Line("rows", str(rows) if summary["complete"] else f"{rows} of {expected}"))
    if rows:
        reasons = summary["counts"]["finish_reasons"]
        if not set(reasons) <= {INGESTED, FORCED, END}:
            cut = reasons.get("length", 0)
            lines.append(Line("cut at the length limit", f"{cut / rows:.1%}"))
        lines += [
            Line(name, f"{count / rows:.1%}")
            for name, count in (
                ("prompts cut to fit", summary["counts"]["truncated"]),
                ("empty predictions", summary["counts"]["empty_predictions"]),
                ("empty references", summary["counts"]["empty_references"]),
            )
            if count
        ]
        unknown = summary["counts"]["out_of_vocabulary_ids"]
        if unknown:
            lines.append(Line("token ids beyond the vocabulary", str(unknown)))
    return lines


def run_lines(results: Results) -> list[Line]:
    """How the predictions were made; empty without telemetry."""
    lines = []
    if results.predict_seconds is not None:
        lines.append(Line("predict seconds", f"{results.predict_seconds:.1f}"))
    if results.peak_bytes is not None:
        where = results.memory()[0]
        lines.append(Line(f"peak memory ({where})", f"{results.peak_bytes / 2**30:.2f} GiB"))
    return lines


def format_lines(
    lines: list[Line], confidence: float, changes: Mapping[str, str] | None = None
) -> str:
    """The lines as text in columns, under a heading.

    Args:
        lines: what to print.
        confidence: level of the intervals; 0 where there are none.
        changes: name of a line -> how its value changed; None leaves the column out.
    """
    heading = Line("", "value", interval_heading(confidence) if confidence else "")
    rows = [[line.name, line.value, line.interval] for line in [heading, *lines]]
    if changes is not None:
        changed = ["change", *(changes.get(line.name, "") for line in lines)]
        rows = [[*row, change] for row, change in zip(rows, changed, strict=True)]
    return format_columns(rows, right={1, 3})


def format_columns(rows: list[list[str]], right: Collection[int] = ()) -> str:
    """Cells as text in columns, those with the numbers ``right`` aligned there."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def interval_heading(confidence: float) -> str:
    """``95% interval``; all digits of the level."""
    return f"{float(f'{confidence * 100:.12g}')!r}".removesuffix(".0") + "% interval"


def digits_of(scale: float) -> int:
    """As many digits as the field prints: ROUGE 0.1234, BLEU 12.34."""
    return 4 if scale == 1 else 2


def score_line(name: str, entry: dict[str, float | None] | None, scale: float) -> Line:
    """One score; ``entry`` as in ``summary.json``, None where it is undefined."""
    if entry is None:
        return Line(name, "undefined")
    digits = digits_of(scale)
    interval = ""
    if entry["low"] is not None:
        interval = f"[{entry['low']:.{digits}f}, {entry['high']:.{digits}f}]"
    return Line(name, f"{entry['value']:.{digits}f}", interval)
