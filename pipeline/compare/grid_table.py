"""A grid as one table: text in columns, Markdown, and CSV with a line per cell."""

from __future__ import annotations

import csv
import io

from pipeline.compare.grid_result import Cell, Column, Grid
from pipeline.report.formats import markdown_table
from pipeline.report.table import digits_of, format_columns

_NOTHING = "–"
_MARKS = {"better": "▲", "worse": "▼", None: ""}


def to_text(grid: Grid) -> str:
    """Plain text, for the screen: score, marks and interval are columns of their own."""
    names = list(grid.rows[0].system)
    table = [names + [text for column in grid.columns for text in (_heading(column), "", "")]]
    for row in grid.rows:
        cells = list(row.system.values())
        for column, cell in zip(grid.columns, row.cells, strict=True):
            best = "*" if cell is not None and cell.best else ""
            cells += [_value(column, cell), best + _mark(cell), _interval(column, cell)]
        table.append(cells)
    right = range(len(names), len(table[0]), 3)
    return "\n".join([format_columns(table, right), "", *_legend(grid, best="*")]) + "\n"


def to_markdown(grid: Grid) -> str:
    """Markdown, for a report or a pull request."""
    table = [[*grid.rows[0].system, *map(_heading, grid.columns)]]
    for row in grid.rows:
        cells = list(row.system.values())
        for column, cell in zip(grid.columns, row.cells, strict=True):
            value = _value(column, cell)
            if cell is not None and cell.best:
                value = f"**{value}**"
            shown = (value, _mark(cell), _interval(column, cell))
            cells.append(" ".join(filter(None, shown)))
        table.append(cells)
    lines = "\n".join(f"* {line}" for line in _legend(grid, best="bold"))
    return f"{markdown_table(table)}\n\n{lines}\n"


def to_csv(grid: Grid) -> str:
    """CSV with all digits, a line per cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    fields = Cell.__struct_fields__
    across = [] if grid.across is None else [grid.across]
    writer.writerow([*across, *grid.rows[0].system, "score", *fields])
    for row in grid.rows:
        for column, cell in zip(grid.columns, row.cells, strict=True):
            group = [] if grid.across is None else [column.group]
            values = [None if cell is None else getattr(cell, field) for field in fields]
            shown = [int(value) if isinstance(value, bool) else value for value in values]
            writer.writerow([*group, *row.system.values(), column.score, *shown])
    return text.getvalue()


def _heading(column: Column) -> str:
    return column.score if column.group is None else f"{column.group} {column.score}"


def _value(column: Column, cell: Cell | None) -> str:
    if cell is None or cell.value is None:
        return _NOTHING
    return f"{cell.value:.{digits_of(column.scale)}f}"


def _interval(column: Column, cell: Cell | None) -> str:
    if cell is None or cell.low is None or cell.high is None:
        return ""
    digits = digits_of(column.scale)
    return f"[{cell.low:.{digits}f}, {cell.high:.{digits}f}]"


def _mark(cell: Cell | None) -> str:
    return "" if cell is None else _MARKS[cell.verdict]


def _legend(grid: Grid, best: str) -> list[str]:
    rows = {column.group: column.rows for column in grid.columns}
    counted = ", ".join(
        f"{count} rows" if group is None else f"{group} {count} rows"
        for group, count in rows.items()
    )
    tests = sum(
        cell is not None and cell.difference_low is not None
        for row in grid.rows
        for cell in row.cells
    )
    lines = [
        f"baseline {grid.baseline}; {counted}; {best}: the best of its column",
        f"▲ better, ▼ worse than the baseline: the {grid.confidence * 100:g}% interval of the "
        f"paired difference leaves out 0 ({grid.replicates} replicates, seed {grid.seed}; {tests} "
        "tests, not corrected)",
    ]
    levels = sorted({column.confidence for column in grid.columns} - {0})
    if levels:
        named = " or ".join(f"{level * 100:g}%" for level in levels)
        lines.append(f"[low, high]: the {named} interval of the score")
    if grid.missing:
        lines.append(f"no scores (–) in {', '.join(grid.missing)}")
    return lines
