"""Token F1, as the SQuAD evaluation script has it (Rajpurkar et al. 2016, 2018).

Words of prediction and reference are compared as bags: precision, recall, and F1 of what they have
in common; the score of a set is the exact mean of F1 over rows. Where one side has no word, F1 is 1
if the other has none either, else 0, as in the script for SQuAD 2.0.

* Several references: the one with the best F1, the first of equals.
* Undefined only for a set without rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np

from pipeline.config import Config
from pipeline.score.metrics.base import Column, Floats, Metric, Scores
from pipeline.score.metrics.pairs import pair_up
from pipeline.score.metrics.squad import normalize_answer

PARTS = ("precision", "recall", "fmeasure")


class TokenF1Options(Config, frozen=True):
    """Options of ``token_f1``.

    Attributes:
        normalize: ``squad`` takes away case, ASCII punctuation and English articles before texts
            are split at white space; ``none`` splits them as they are.
    """

    normalize: Literal["squad", "none"] = "squad"


class TokenF1(Metric):
    """See the module."""

    options_type = TokenF1Options

    def __init__(self, options: TokenF1Options | None = None) -> None:
        self.options: TokenF1Options = options or TokenF1Options()
        self.headline = ("token_f1",)
        self.columns = (
            Column("token_f1.rows", integer=True),
            *(Column(f"token_f1.{part}", integer=False) for part in PARTS),
        )

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        pairs = pair_up(predictions, references)
        compared = [
            _compare(self._words(prediction), self._words(reference))
            for prediction, reference in zip(pairs.predictions, pairs.references, strict=True)
        ]
        scored = np.array(compared, dtype=np.float64).reshape(-1, len(PARTS))
        best = scored[pairs.preferred(-scored[:, 2])]
        return np.column_stack((np.ones(len(best)), best))

    def _words(self, text: str) -> list[str]:
        return (normalize_answer(text) if self.options.normalize == "squad" else text).split()

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        rows, *sums = totals
        precision, recall, fmeasure = (total / rows if rows else None for total in sums)
        return {
            "token_f1": fmeasure,
            "token_f1.precision": precision,
            "token_f1.recall": recall,
        }

    def signature(self, references_per_row: int | None = None) -> str:
        return f"nrefs:{references_per_row or 'var'}|tok:{self.options.normalize}|version:1"


def _compare(prediction: list[str], reference: list[str]) -> tuple[float, float, float]:
    if not prediction or not reference:
        score = float(prediction == reference)
        return score, score, score
    common = (Counter(prediction) & Counter(reference)).total()
    if common == 0:
        return 0.0, 0.0, 0.0
    precision = common / len(prediction)
    recall = common / len(reference)
    return precision, recall, 2 * precision * recall / (precision + recall)
