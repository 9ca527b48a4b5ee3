"""Notes beside the chunks of a run that lasts: time, memory and sha256 of a chunk, for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def telemetry_name(chunk: int) -> str:
    """``telemetry-00000.json`` for chunk 0."""
    return f"telemetry-{chunk:05d}.json"


def read_note(path: Path) -> dict[str, Any]:
    """The JSON object at ``path``; empty where there is none that can be read."""
    try:
        return parse_note(path.read_bytes())
    except OSError:
        return {}


def parse_note(content: bytes) -> dict[str, Any]:
    """A JSON object; empty where ``content`` is none."""
    try:
        entries = json.loads(content)
    except ValueError:
        return {}
    return entries if isinstance(entries, dict) else {}
