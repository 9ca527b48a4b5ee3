"""A comparison as text in columns and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.compare.result import Comparison, Difference, Side, System
from pipeline.report.table import interval_heading

Table = Sequence[Sequence[str]]
_NOTHING = "–"


def to_text(comparison: Comparison) -> str:
    """Plain text, for the screen."""
    return _document(comparison, lambda title: title, _text_table)


def to_markdown(comparison: Comparison) -> str:
    """Markdown, for a report or a pull request, with the signatures that such a one cites."""
    text = _document(comparison, lambda title: f"### {title}", _markdown_table)
    signatures = comparison.signatures.items()
    return text + "\n" + "".join(f"- {name}: `{signature}`\n" for name, signature in signatures)


def _document(
    comparison: Comparison, heading: Callable[[str], str], table: Callable[[Table], str]
) -> str:
    baseline = comparison.baseline
    parts = [
        f"baseline {_named(baseline)}; {comparison.rows} rows compared, "
        f"{comparison.replicates} replicates, seed {comparison.seed}"
    ]
    if comparison.not_compared:
        labels = ", ".join(comparison.not_compared)
        parts.append(f"not compared, since they are no sums of statistics: {labels}")
    for system in comparison.systems:
        parts.append(heading(f"{_named(system)} against {baseline.scores}"))
        parts.append(table(_scores(comparison, system)))
        changed = _changed(system)
        if len(changed) > 1:
            parts += ["rows that changed most", table(changed)]
    return "\n\n".join(parts) + "\n"


def _named(side: Side) -> str:
    return side.scores if side.complete else f"{side.scores} (partial: {side.rows} rows)"


def _scores(comparison: Comparison, system: System) -> Table:
    level = interval_heading(comparison.confidence)
    heading = ["", "baseline", "system", "difference", level, "p", "wins", "ties", "losses"]
    return [heading, *(_score(name, each) for name, each in system.differences.items())]


def _score(name: str, each: Difference) -> list[str]:
    interval = _NOTHING
    if each.low is not None and each.high is not None:
        interval = f"[{_signed(each.low, each.scale)}, {_signed(each.high, each.scale)}]"
    return [
        name,
        _plain(each.baseline, each.scale),
        _plain(each.system, each.scale),
        _signed(each.difference, each.scale),
        interval,
        _NOTHING if each.p_value is None else f"{each.p_value:.4f}",
        *map(str, (each.wins, each.ties, each.losses)),
    ]


def _changed(system: System) -> Table:
    rows = [
        [
            name,
            _one_line(change.id),
            _plain(change.baseline, each.scale),
            _plain(change.system, each.scale),
            _signed(change.difference, each.scale),
        ]
        for name, each in system.differences.items()
        for change in each.changed
    ]
    return [["", "id", "baseline", "system", "difference"], *rows]


def _plain(value: float | None, scale: float) -> str:
    return _NOTHING if value is None else f"{value:.{_digits(scale)}f}"


def _signed(value: float | None, scale: float) -> str:
    # Adding 0 turns what is rounded to -0.00 into 0.00.
    return (
        _NOTHING if value is None else f"{round(value, _digits(scale)) + 0.0:+.{_digits(scale)}f}"
    )


def _digits(scale: float) -> int:
    # As many digits as the field prints: ROUGE 0.1234, BLEU 12.34.
    return 4 if scale == 1 else 2


def _one_line(text: str) -> str:
    return text if text.isprintable() else repr(text)


def _text_table(table: Table) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    left = _left(table)
    return "\n".join(
        "  ".join(
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    )


def _markdown_table(table: Table) -> str:
    heading, *rows = ([cell.replace("|", r"\|") for cell in row] for row in table)
    left = _left(table)
    rule = [":--" if index < left else "--:" for index in range(len(heading))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heading, rule, *rows))


def _left(table: Table) -> int:
    """How many columns, from the left, hold text and not numbers."""
    return 2 if table[0][1] == "id" else 1
