"""What a report is made of: ``summary.json`` and, where it is there, ``telemetry.csv``."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import ScoresError
from pipeline.schema import SCHEMA_VERSION

SUMMARY = "summary.json"


@dataclass(frozen=True)
class Results:
    """Scores of a set, and how its predictions were made.

    Attributes:
        summary: the contents of ``summary.json``.
        chunks: the lines of ``telemetry.csv``, None for an empty field; empty without telemetry.
    """

    summary: dict[str, Any]
    chunks: list[dict[str, float | None]]

    @property
    def predict_seconds(self) -> float | None:
        """Seconds that phase one spent in chunks; None where a chunk came without telemetry."""
        seconds = [chunk.get("elapsed_s") for chunk in self.chunks]
        known = [value for value in seconds if value is not None]
        return sum(known) if known and len(known) == len(seconds) else None

    def memory(self) -> tuple[str, list[dict[str, float | None]]]:
        """Where memory was counted (``GPU`` or ``process``), and per chunk before, peak, after."""
        counted = any(chunk.get("allocated_peak_bytes") is not None for chunk in self.chunks)
        kind = "allocated" if counted else "rss"
        moments = ("before", "peak", "after")
        return "GPU" if counted else "process", [
            {moment: chunk.get(f"{kind}_{moment}_bytes") for moment in moments}
            for chunk in self.chunks
        ]

    @property
    def peak_bytes(self) -> float | None:
        """Most memory in any chunk; None without telemetry."""
        peaks = [moments["peak"] for moments in self.memory()[1]]
        return max((peak for peak in peaks if peak is not None), default=None)


def read_results(scores: Path, telemetry: Path | None) -> Results:
    """Read what score and predict left; ``telemetry`` is None where it is not known.

    Raises:
        ScoresError: no scores, or files that were altered.
    """
    return Results(read_summary(scores), _read_telemetry(telemetry) if telemetry else [])


def read_summary(scores: Path) -> dict[str, Any]:
    """``summary.json`` of a folder that score wrote.

    Raises:
        ScoresError: there is none, or it was altered.
    """
    path = scores / SUMMARY
    try:
        summary = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise ScoresError(
            f"{path}: no such file; run `twophase score`, or name the folder with --scores"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ScoresError(f"{path} cannot be read ({error}); run `twophase score` again") from None
    if (
        not isinstance(summary, dict)
        or summary.get("schema_version") != SCHEMA_VERSION
        or not summary.keys() >= {"metrics", "counts", "rows", "expected_rows", "confidence"}
    ):
        raise ScoresError(
            f"{path} was not written by this version of score; run `twophase score` again"
        )
    return summary


def _read_telemetry(path: Path) -> list[dict[str, float | None]]:
    if not path.exists():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as handle:
            return [
                {name: float(text) if text else None for name, text in line.items()}
                for line in csv.DictReader(handle)
            ]
    except (OSError, ValueError, TypeError) as error:
        raise ScoresError(
            f"{path} cannot be read ({error}); run `twophase predict` again, which writes it anew "
            "without predicting, or remove it"
        ) from None
