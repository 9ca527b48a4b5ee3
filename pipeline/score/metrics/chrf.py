"""chrF (Popović 2015) and chrF++ (Popović 2017), with sacreBLEU's numbers and options.

The statistics are sacreBLEU's, integer for integer: per order of character n-grams, then of word
n-grams, those of the prediction, those of the reference, and the matches. They are computed by
column (``chrf_tokens``, ``ngrams``).

* n-grams of the prediction do not count in an order of which the reference has none.
* Several references: the one with the best score for the row, the first of equals.
* Undefined where the references have no n-gram at all, as in a set without rows or with blank
  references only (sacreBLEU: 0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import pairwise
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.config import Config
from pipeline.score.chrf_tokens import split_for_chrf
from pipeline.score.metrics.base import Column, Floats, Metric, Scores
from pipeline.score.metrics.pairs import Pairs, pair_up
from pipeline.score.ngrams import PREDICTION, Sides, clipped_matches
from pipeline.score.words import Words

# Characters whose arrays fit the processor's cache; more at once are slower.
BLOCK_CHARACTERS = 60_000
_EPSILON = 1e-16  # sacreBLEU's


class ChrfOptions(Config, frozen=True):
    """Options of ``chrf``, named as in ``sacrebleu.metrics.CHRF``.

    Attributes:
        char_order: longest n-gram of characters.
        word_order: longest n-gram of words; 0 is chrF, 2 is chrF++.
        beta: how many times as much recall counts as precision.
        lowercase: compare in lower case.
        whitespace: spaces are characters, too.
        eps_smoothing: a small number for an order without n-grams, in place of leaving it out.
    """

    char_order: Annotated[int, msgspec.Meta(ge=1)] = 6
    word_order: Annotated[int, msgspec.Meta(ge=0)] = 0
    beta: Annotated[int, msgspec.Meta(ge=1)] = 2
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False


class Chrf(Metric):
    """See the module."""

    options_type = ChrfOptions
    scale = 100.0

    def __init__(self, options: ChrfOptions | None = None) -> None:
        self.options: ChrfOptions = options or ChrfOptions()
        self.headline = ("chrf",)
        orders = [f"char_{n + 1}" for n in range(self.options.char_order)]
        orders += [f"word_{n + 1}" for n in range(self.options.word_order)]
        self.columns = tuple(
            Column(f"chrf.{part}_{order}", integer=True)
            for order in orders
            for part in ("sys", "ref", "correct")
        )

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        pairs = pair_up(predictions, references)
        blocks = [self._block(*block) for block in _blocks(pairs)]
        statistics = np.concatenate([np.empty((0, len(self.columns))), *blocks])
        return statistics[pairs.preferred(-self._f_scores(statistics))]

    def _block(self, predictions: list[str], references: list[str]) -> Floats:
        texts = [*predictions, *references]
        if self.options.lowercase:
            texts = [text.lower() for text in texts]
        tokens = split_for_chrf(texts, whitespace=self.options.whitespace)
        parts = [
            _order_statistics(words, len(predictions), orders)
            for words, orders in zip(
                tokens, (self.options.char_order, self.options.word_order), strict=True
            )
        ]
        return np.concatenate(parts, axis=1)

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        statistics = np.array([totals], dtype=np.float64)
        defined = bool(_has_reference(statistics)[0])
        return {"chrf": float(self._f_scores(statistics)[0]) if defined else None}

    def example_scores(self, statistics: Floats) -> dict[str, Floats]:
        defined = _has_reference(statistics)
        return {"chrf": np.where(defined, self._f_scores(statistics), np.nan)}

    def _f_scores(self, statistics: Floats) -> Floats:
        """(rows,) scores in 0–100, with the operations of sacreBLEU in their order."""
        rows = len(statistics)
        factor = self.options.beta**2
        smoothed, precisions, recalls = np.zeros(rows), np.zeros(rows), np.zeros(rows)
        effective = np.zeros(rows)
        for order in range(len(self.columns) // 3):
            sys, ref, correct = statistics[:, 3 * order : 3 * order + 3].T
            precision = np.where(sys > 0, correct / np.maximum(sys, 1), _EPSILON)
            recall = np.where(ref > 0, correct / np.maximum(ref, 1), _EPSILON)
            smoothed += _f_measure(precision, recall, factor, _EPSILON)
            both = (sys > 0) & (ref > 0)
            precisions += np.where(both, precision, 0.0)
            recalls += np.where(both, recall, 0.0)
            effective += both
        if self.options.eps_smoothing:
            return 100 * smoothed / (len(self.columns) // 3)
        effective = np.maximum(effective, 1)
        return 100 * _f_measure(precisions / effective, recalls / effective, factor, 0.0)

    def signature(self, references_per_row: int | None = None) -> str:
        options = self.options
        parts = {
            "nrefs": references_per_row or "var",
            "case": "lc" if options.lowercase else "mixed",
            "eff": "no" if options.eps_smoothing else "yes",
            "nc": options.char_order,
            "nw": options.word_order,
            "space": "yes" if options.whitespace else "no",
        }
        if options.beta != ChrfOptions().beta:
            parts["beta"] = options.beta  # sacreBLEU has it in the name of the score
        parts["version"] = version("sacrebleu")
        return "|".join(f"{key}:{value}" for key, value in parts.items())


def _f_measure(precision: Floats, recall: Floats, factor: int, otherwise: float) -> Floats:
    divisor = factor * precision + recall
    measured = (1 + factor) * precision * recall / np.where(divisor > 0, divisor, 1.0)
    return np.where(divisor > 0, measured, otherwise)


def _has_reference(statistics: Floats) -> NDArray[np.bool_]:
    has: NDArray[np.bool_] = statistics[:, 1::3].sum(axis=1) > 0
    return has


def _order_statistics(words: Words, rows: int, orders: int) -> Floats:
    """(rows, 3 · orders) as in ``columns``; texts are all predictions, then one reference each."""
    sides = Sides(np.tile(np.arange(rows), 2), np.repeat([PREDICTION, 0], rows))
    missing = np.arange(orders)  # an order has as many n-grams fewer than there are tokens
    sys, ref = (np.maximum(half[:, None] - missing, 0) for half in np.split(words.counts, [rows]))
    statistics = np.empty((rows, orders, 3))
    statistics[:, :, 0] = np.where(ref > 0, sys, 0)
    statistics[:, :, 1] = ref
    statistics[:, :, 2] = clipped_matches(words, sides, rows, orders)
    return statistics.reshape(rows, 3 * orders)


def _blocks(pairs: Pairs) -> Iterator[tuple[list[str], list[str]]]:
    lengths = [
        len(prediction) + len(reference)
        for prediction, reference in zip(pairs.predictions, pairs.references, strict=True)
    ]
    block = np.cumsum(lengths) // BLOCK_CHARACTERS
    cuts = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(lengths)]
    for start, stop in pairwise(cuts):
        yield pairs.predictions[start:stop], pairs.references[start:stop]
