"""Edit similarity of characters, through RapidFuzz.

``levenshtein``: 1 − distance / length of the longer text (Levenshtein 1966; insertions, deletions
and substitutions cost 1). ``indel``: without substitutions, 1 − distance / length of both texts,
which is ``difflib``'s and ``fuzz.ratio``'s scale. The score of a set is the exact mean over rows.

* Several references: the most similar one.
* Two empty texts are equal: 1. Undefined only for a set without rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Literal

import numpy as np

from pipeline.config import Config
from pipeline.score.metrics.base import Column, Floats, Metric, Scores
from pipeline.score.metrics.pairs import pair_up


class EditSimilarityOptions(Config, frozen=True):
    """Options of ``edit_similarity``.

    Attributes:
        distance: which edits there are; see the module.
    """

    distance: Literal["levenshtein", "indel"] = "levenshtein"


class EditSimilarity(Metric):
    """See the module."""

    options_type = EditSimilarityOptions

    def __init__(self, options: EditSimilarityOptions | None = None) -> None:
        self.options: EditSimilarityOptions = options or EditSimilarityOptions()
        self.headline = ("edit_similarity",)
        self.columns = (
            Column("edit_similarity.rows", integer=True),
            Column("edit_similarity.similarity", integer=False),
        )

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        from rapidfuzz.distance import Indel, Levenshtein

        kind = Levenshtein if self.options.distance == "levenshtein" else Indel
        pairs = pair_up(predictions, references)
        similarities = np.array(
            [
                kind.normalized_similarity(prediction, reference)
                for prediction, reference in zip(pairs.predictions, pairs.references, strict=True)
            ],
            dtype=np.float64,
        )
        best = similarities[pairs.preferred(-similarities)]
        return np.column_stack((np.ones(len(best)), best))

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        rows, similarity = totals
        return {"edit_similarity": similarity / rows if rows else None}

    def signature(self, references_per_row: int | None = None) -> str:
        return (
            f"nrefs:{references_per_row or 'var'}|distance:{self.options.distance}"
            f"|version:rapidfuzz-{version('rapidfuzz')}"
        )
