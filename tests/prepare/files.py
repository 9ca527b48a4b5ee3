"""Data set files for tests, and prepare over them with short settings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.config import parse_section
from pipeline.prepare.config import PrepareConfig
from pipeline.prepare.prepare import PreparedData, prepare


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


def write_parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def pair(number: int, **more: Any) -> dict[str, Any]:
    """A row with the default columns."""
    row = {"id": f"id-{number}", "document": f"document {number}", "summary": f"summary {number}"}
    return row | more


def run(folder: Path, **settings: Any) -> PreparedData:
    """Prepare into ``folder``; ``settings`` are those of the section, with no limit by default."""
    if "dataset" in settings:
        settings["dataset"] = str(settings["dataset"])
    config = parse_section({"limit": None} | settings, "prepare", PrepareConfig)
    return prepare(config, folder / "examples.parquet", folder / "source")


def rows(folder: Path) -> list[dict[str, Any]]:
    """What ``run`` wrote."""
    table = pq.read_table(folder / "examples.parquet")
    return list(table.to_pylist())
