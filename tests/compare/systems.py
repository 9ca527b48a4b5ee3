"""Scored sets that can be compared."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.score.config import ScoreConfig
from pipeline.score.run import score
from pipeline.store.chunk import chunk_name
from tests.score.sets import write_set

WORDS = [*"abcdefghijklm", ".", ","]

Rows = list[tuple[str, str, list[str]]]  # id, prediction, references


def make_rows(count: int, noise: float, seed: int = 0) -> Rows:
    """Rows whose predictions are their reference with a share ``noise`` of other words.

    The references depend on ``count`` alone.
    """
    texts, errors = random.Random(count), random.Random(seed)
    rows = []
    for row in range(count):
        reference = texts.choices(WORDS, k=texts.randint(4, 20))
        prediction = [w if errors.random() > noise else errors.choice(WORDS) for w in reference]
        rows.append((f"id-{row}", " ".join(prediction), [" ".join(reference)]))
    return rows


def write_scores(
    folder: Path, rows: Rows, *, without: Sequence[int] = (), chunk_rows: int = 50, **how: Any
) -> Path:
    """Score ``rows``, less the chunks in ``without``, into ``folder``."""
    predictions = folder.with_name(f"{folder.name}-predictions")
    write_set(
        predictions,
        [row[1] for row in rows],
        [row[2] for row in rows],
        ids=[row[0] for row in rows],
        chunk_rows=chunk_rows,
        text=True,
        seal=not without,
    )
    for chunk in without:
        (predictions / chunk_name(chunk)).unlink()
    config = ScoreConfig(**{"replicates": 20, **how})
    score(predictions, folder, folder.with_suffix(".json"), config, allow_partial=bool(without))
    return folder
