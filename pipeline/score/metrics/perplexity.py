"""Perplexity of the references under the model: e to the mean negative log-likelihood of a token.

Phase one's engine ``forced`` writes per row the sum of negative log-likelihoods of the label tokens
in nats (``nll``) and how many there are (``label_tokens``); here they are summed over rows, so that
each token counts the same (Jelinek et al. 1977). It is a number of this tokenizer: models with
other vocabularies do not compare by it.

Undefined without label tokens, and where it is too large for a float.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pipeline.score.metrics.base import Column, NoOptions, Scores
from pipeline.score.metrics.forced import ForcedMetric


class Perplexity(ForcedMetric):
    """See the module."""

    needs = ("nll", "label_tokens")
    scale = 100.0  # of the histogram; there is no upper end
    lower_is_better = True

    def __init__(self, options: NoOptions | None = None) -> None:
        super().__init__(options)
        self.headline = ("perplexity",)
        self.columns = (
            Column("perplexity.nll", integer=False),
            Column("perplexity.label_tokens", integer=True),
        )

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        nll, tokens = totals
        mean = nll / tokens if tokens else None
        return {
            "perplexity": None if mean is None else _exp(mean),
            "perplexity.nll_per_token": mean,
            "perplexity.label_tokens": tokens,
        }

    def signature(self, references_per_row: int | None = None) -> str:
        return "loss:nats|mean:tokens|version:1"


def _exp(exponent: float) -> float | None:
    try:
        return math.exp(exponent)
    except OverflowError:
        return None
