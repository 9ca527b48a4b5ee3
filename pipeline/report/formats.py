"""What ``twophase score`` prints: scores, intervals, groups, and differences to the scores before.

For people as a table or Markdown, rounded as the field prints; for programs as JSON or CSV, with
all digits. The scores before are those of ``metrics.json`` as it was when the command began.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pipeline.report.table import (
    digits_of,
    format_columns,
    format_lines,
    interval_heading,
    score_line,
    score_lines,
)

Format = Literal["table", "json", "markdown", "csv"]
Previous = Mapping[str, float]


def read_previous(metrics: Path) -> dict[str, float] | None:
    """The scores in an earlier ``metrics.json``; None where there are none."""
    try:
        content = json.loads(metrics.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict):
        return None
    return {name: value for name, value in content.items() if isinstance(value, int | float)}


def format_scores(summary: Mapping[str, Any], previous: Previous | None, format: Format) -> str:
    """The results in ``format``.

    Args:
        summary: the contents of ``summary.json``.
        previous: score -> its value before; None where nothing was scored before.
        format: one of ``Format``.
    """
    if format == "json":
        return _json(summary, previous)
    if format == "csv":
        return _csv(summary, previous)
    return _table(summary, previous) if format == "table" else _markdown(summary, previous)


def _table(summary: Mapping[str, Any], previous: Previous | None) -> str:
    changes = None if previous is None else _changes(summary, previous)
    text = format_lines(score_lines(dict(summary)), summary["confidence"], changes)
    groups = format_groups(summary)
    return f"{text}\n\n{groups}" if groups else text


def format_groups(summary: Mapping[str, Any]) -> str:
    """The scores of each group as text in columns; empty where there are no groups."""
    rows = group_rows(summary)
    return format_columns(rows, right=[len(summary["by"])]) if rows else ""


def group_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """A heading, and a line of cells per group; empty where there are no groups."""
    if not summary["by"]:
        return []
    scales = {name: scale for name, _, scale in _entries(summary)}
    rows = [[*summary["by"], "rows", *scales]]
    for group in summary["groups"]:
        values = [_shown(value) for value in group["values"].values()]
        lines = [score_line(name, group["scores"][name], scale) for name, scale in scales.items()]
        cells = [f"{line.value} {line.interval}".rstrip() for line in lines]
        rows.append([*values, str(group["rows"]), *cells])
    return rows


def _markdown(summary: Mapping[str, Any], previous: Previous | None) -> str:
    heading = ["", "value", interval_heading(summary["confidence"]), "change"]
    changes = _changes(summary, previous or {})
    rows = [
        [line.name, line.value, line.interval, changes.get(line.name, "")]
        for line in score_lines(dict(summary))
    ]
    shown = [0, 1, *([2] if summary["confidence"] else []), *([3] if previous is not None else [])]
    text = markdown_table([[row[place] for place in shown] for row in [heading, *rows]])
    signatures = "\n".join(
        f"- {name}: `{metric['signature']}`" for name, metric in summary["metrics"].items()
    )
    groups = group_rows(summary)
    return "\n\n".join([text, *([markdown_table(groups)] if groups else []), signatures])


def _json(summary: Mapping[str, Any], previous: Previous | None) -> str:
    scores = {}
    for name, entry, _ in _entries(summary):
        value = None if entry is None else entry["value"]
        before = (previous or {}).get(name)
        change = None if value is None or before is None else value - before
        interval = {"low": None, "high": None} if entry is None else entry
        scores[name] = {
            "value": value,
            "low": interval["low"],
            "high": interval["high"],
            "previous": before,
            "change": change,
        }
    kept = ("rows", "expected_rows", "complete", "confidence", "by")
    content = {**{name: summary[name] for name in kept}, "scores": scores}
    return json.dumps({**content, "groups": summary["groups"]}, indent=2, ensure_ascii=False)


def _csv(summary: Mapping[str, Any], previous: Previous | None) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["group", "rows", "score", "value", "low", "high", "previous", "change"])
    for name, entry, _ in _entries(summary):
        before = (previous or {}).get(name)
        numbers = _numbers(entry)
        change = None if before is None or entry is None else entry["value"] - before
        writer.writerow(["", summary["rows"], name, *numbers, before, change])
    for group in summary["groups"]:
        label = json.dumps(group["values"], ensure_ascii=False)
        for name, entry in group["scores"].items():
            writer.writerow([label, group["rows"], name, *_numbers(entry), None, None])
    return text.getvalue().rstrip("\n")


def _entries(summary: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any] | None, float]]:
    """Each headline score: its name, its entry, its scale."""
    for metric in summary["metrics"].values():
        for name, entry in metric["scores"].items():
            yield name, entry, metric["scale"]


def _changes(summary: Mapping[str, Any], previous: Previous) -> dict[str, str]:
    changes = {}
    for name, entry, scale in _entries(summary):
        if entry is not None and name in previous:
            change = entry["value"] - previous[name]
            changes[name] = f"{change:+.{digits_of(scale)}f}" if change else "="
    if "rows" in previous:
        change = summary["rows"] - previous["rows"]
        changes["rows"] = f"{change:+g}" if change else "="
    return changes


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split()) or '""'
    return json.dumps(value)


def _numbers(entry: Mapping[str, Any] | None) -> list[float | None]:
    return [None] * 3 if entry is None else [entry["value"], entry["low"], entry["high"]]


def markdown_table(rows: list[list[str]]) -> str:
    """Cells as a Markdown table; the first row is its heading."""
    heading, *body = ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows]
    return "\n".join([heading, "|" + "---|" * len(rows[0]), *body])


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
