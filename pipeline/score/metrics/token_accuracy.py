"""Token accuracy: the share of label tokens that are the model's first choice.

Phase one's engine ``forced`` writes per row how many label tokens there are (``label_tokens``) and
for how many of them the model, given the true tokens before, ranks the true one highest
(``correct_tokens``); both are summed over rows. Undefined without label tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.score.metrics.base import Column, NoOptions, Scores
from pipeline.score.metrics.forced import ForcedMetric


class TokenAccuracy(ForcedMetric):
    """See the module."""

    needs = ("correct_tokens", "label_tokens")

    def __init__(self, options: NoOptions | None = None) -> None:
        super().__init__(options)
        self.headline = ("token_accuracy",)
        self.columns = tuple(Column(f"token_accuracy.{name}", integer=True) for name in self.needs)

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        correct, tokens = totals
        return {
            "token_accuracy": correct / tokens if tokens else None,
            "token_accuracy.label_tokens": tokens,
        }

    def signature(self, references_per_row: int | None = None) -> str:
        return "choice:first|version:1"
