"""What stands in the documentation, so that tests can run it."""

from __future__ import annotations

import re

from tests.project import ROOT


def page(name: str) -> str:
    """The text of ``docs/<name>``."""
    return (ROOT / "docs" / name).read_text()


def section(text: str, heading: str) -> str:
    """What stands under ``heading`` (given with its #s), up to the next one of its level."""
    level = len(heading) - len(heading.lstrip("#"))
    found = re.search(
        rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{level}}} |\Z)", text, re.DOTALL | re.MULTILINE
    )
    assert found is not None, heading
    return found[1]


def blocks(text: str, language: str = "bash") -> list[str]:
    """The code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def table(text: str, heading: str) -> list[list[str]]:
    """The cells of the Markdown table whose first heading is ``heading``, without that line."""
    lines = text.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows
