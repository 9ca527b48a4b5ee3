"""Shapes that the oracles want."""

from __future__ import annotations

from collections.abc import Sequence

Rows = list[tuple[str, list[str]]]


def split_rows(rows: Rows) -> tuple[list[str], list[list[str]]]:
    """Predictions, and lists of references."""
    return [row[0] for row in rows], [row[1] for row in rows]


def streams(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """sacreBLEU's shape: the first references of all rows, the second ones, …; None for none."""
    longest = max(map(len, references))
    return [[row[k] if k < len(row) else None for row in references] for k in range(longest)]


NASTY = [
    "",
    " \t\u3000",
    "<skipped>",
    "a<skip<skipped>ped>b",
    "ends with a hyphen -\n",
    "hy-\nphen",
    "&amp;lt; &quot;x&quot; &gt;&lt;",
    "..a.5..5.b",
    ".5",
    "5.",
    "1,000.50-3 -4 a-5 6-",
    ",.,.1.,.,2",
    "lone\rcarriage\x85next\u2028line\x1cfile",
    "zero\x00byte\x7f",
    "٣.٤ ५,६ ²-½",
    "「中文」，1.5元。\u2003\u2fff\U00020000",
    "ΌΔΟΣ ΣΑΣ İSTANBUL",
    "lone \ud800 surrogate",
    "€5+£3=¥8 ∑x²",
    "(hi) (hi \"hi\" -- - ' ''",
    "\x7fdel\x7f a\x80 ~tilde~",
]
