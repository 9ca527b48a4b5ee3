"""Exact match: the share of predictions that equal one of their references.

``normalize: none`` compares the texts as they are, ``squad`` as the SQuAD script does
(Rajpurkar et al. 2016), without case, ASCII punctuation and English articles. Undefined only for a
set without rows: an empty prediction equals an empty reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from pipeline.config import Config
from pipeline.score.metrics.base import Column, Floats, Metric, Scores, check_rows
from pipeline.score.metrics.squad import normalize_answer


class ExactMatchOptions(Config, frozen=True):
    """Options of ``exact_match``.

    Attributes:
        normalize: what is done to both sides first.
    """

    normalize: Literal["none", "squad"] = "none"


class ExactMatch(Metric):
    """See the module."""

    options_type = ExactMatchOptions

    def __init__(self, options: ExactMatchOptions | None = None) -> None:
        self.options: ExactMatchOptions = options or ExactMatchOptions()
        self.headline = ("exact_match",)
        self.columns = (
            Column("exact_match.rows", integer=True),
            Column("exact_match.matches", integer=True),
        )

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        check_rows(predictions, references)
        normalize = normalize_answer if self.options.normalize == "squad" else str
        matches = [
            normalize(prediction) in map(normalize, texts)
            for prediction, texts in zip(predictions, references, strict=True)
        ]
        return np.column_stack((np.ones(len(matches)), np.array(matches, dtype=np.float64)))

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        rows, matches = totals
        return {"exact_match": matches / rows if rows else None}

    def signature(self, references_per_row: int | None = None) -> str:
        return f"nrefs:{references_per_row or 'var'}|match:{self.options.normalize}|version:1"
