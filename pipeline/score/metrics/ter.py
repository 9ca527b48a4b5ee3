"""TER, translation edit rate (Snover et al. 2006), through sacreBLEU.

The fewest edits (insertions, deletions, substitutions of words, shifts of phrases) that turn the
prediction into a reference, over the length of the references, in percent; 0 is best and more than
100 is possible. The statistics are sacreBLEU's: per row the edits against the reference that needs
fewest, and the mean length of its references, which may be a fraction.

Undefined where the references have no word (sacreBLEU: 0, or 100 if the prediction has one).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pipeline.config import Config
from pipeline.score.metrics.base import Column, Floats, Metric, Scores, check_rows


class TerOptions(Config, frozen=True):
    """Options of ``ter``, named as in ``sacrebleu.metrics.TER``.

    Attributes:
        normalized: tokenize punctuation and replace entities, as Tercom does.
        no_punct: remove punctuation.
        asian_support: with ``normalized``, each Chinese or Japanese character is a word; with
            ``no_punct``, their punctuation is removed, too.
        case_sensitive: keep upper and lower case apart.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False


class Ter(Metric):
    """See the module."""

    options_type = TerOptions
    scale = 100.0
    lower_is_better = True

    def __init__(self, options: TerOptions | None = None) -> None:
        self.options: TerOptions = options or TerOptions()
        self.headline = ("ter",)
        self.columns = (Column("ter.edits", integer=True), Column("ter.ref_len", integer=False))

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        check_rows(predictions, references)
        scorer = _scorer(self.options)
        statistics = np.empty((len(predictions), len(self.columns)))
        for row, (prediction, texts) in enumerate(zip(predictions, references, strict=True)):
            score = scorer.sentence_score(prediction, list(texts))
            statistics[row] = score.num_edits, score.ref_length
        return statistics

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        edits, length = totals
        rate = 100 * (edits / length) if length > 0 else None
        return {"ter": rate, "ter.edits": edits, "ter.ref_len": length}

    def signature(self, references_per_row: int | None = None) -> str:
        oracle = _new_scorer(self.options)
        oracle.num_refs = references_per_row or -1
        return str(oracle.get_signature())


@lru_cache(maxsize=4)
def _scorer(options: TerOptions) -> Any:
    return _new_scorer(options)


def _new_scorer(options: TerOptions) -> Any:
    from sacrebleu.metrics.ter import TER

    return TER(
        normalized=options.normalized,
        no_punct=options.no_punct,
        asian_support=options.asian_support,
        case_sensitive=options.case_sensitive,
    )
