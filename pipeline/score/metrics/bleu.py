"""BLEU (Papineni et al. 2002), with sacreBLEU's numbers, options and signature (Post 2018).

The statistics are sacreBLEU's, integer for integer: tokens of the prediction, tokens of the closest
reference, and per order the n-grams that match and the n-grams there are. They are computed by
column (``words``, ``ngrams``); sacreBLEU's public ``BLEU.compute_bleu`` turns sums into scores.

* A score of a set takes the options as they are; a score of a row has effective order, as
  ``sentence_bleu`` has it.
* Undefined where the closest references have no token and nothing matches, as in a set without
  rows or with blank references only (sacreBLEU: 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Annotated, Literal

import msgspec
import numpy as np

from pipeline.config import Config
from pipeline.score.metrics.base import Column, Floats, Metric, Scores, check_rows
from pipeline.score.ngrams import clipped_matches, closest_lengths, make_sides
from pipeline.score.sentence_bleu import sentence_bleu
from pipeline.score.words import SacrebleuTokenizer, require_tokenizer, split_words

# Rows whose arrays fit the processor's cache; more rows at once are slower.
BLOCK_ROWS = 2048


class BleuOptions(Config, frozen=True):
    """Options of ``bleu``, named as in ``sacrebleu.metrics.BLEU``.

    Attributes:
        tokenize: how words are found; the last ones need packages or models of their own.
        smooth_method: what is done about an order without a match.
        smooth_value: its value, for ``floor`` (null: 0.1) and ``add-k`` (null: 1).
        lowercase: compare in lower case.
        effective_order: stop at the longest order that the predictions have.
        max_ngram_order: longest n-gram.
    """

    tokenize: SacrebleuTokenizer = "13a"
    smooth_method: Literal["none", "floor", "add-k", "exp"] = "exp"
    smooth_value: Annotated[float, msgspec.Meta(ge=0)] | None = None
    lowercase: bool = False
    effective_order: bool = False
    max_ngram_order: Annotated[int, msgspec.Meta(ge=1)] = 4


class Bleu(Metric):
    """See the module.

    Raises:
        ConfigError: the tokenizer needs what is not installed.
    """

    options_type = BleuOptions
    scale = 100.0

    def __init__(self, options: BleuOptions | None = None) -> None:
        self.options: BleuOptions = options or BleuOptions()
        self.headline = ("bleu",)
        orders = range(1, self.options.max_ngram_order + 1)
        names = ["sys_len", "ref_len", *(f"correct_{n}" for n in orders)]
        names += [f"total_{n}" for n in orders]
        self.columns = tuple(Column(f"bleu.{name}", integer=True) for name in names)
        require_tokenizer(self.options.tokenize, "score.metrics.bleu.tokenize")

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        check_rows(predictions, references)
        blocks = [
            self._block(
                predictions[start : start + BLOCK_ROWS], references[start : start + BLOCK_ROWS]
            )
            for start in range(0, len(predictions), BLOCK_ROWS)
        ]
        return np.concatenate([np.empty((0, len(self.columns))), *blocks])

    def _block(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        rows, orders = len(predictions), self.options.max_ngram_order
        sides = make_sides(references)
        texts = [*predictions, *chain.from_iterable(references)]
        if self.options.lowercase:
            texts = [text.lower() for text in texts]
        words = split_words(texts, self.options.tokenize)
        predicted = words.counts[:rows]
        statistics = np.empty((rows, len(self.columns)))
        statistics[:, 0] = predicted
        statistics[:, 1] = closest_lengths(words.counts, sides, rows)
        statistics[:, 2 : 2 + orders] = clipped_matches(words, sides, rows, orders)
        statistics[:, 2 + orders :] = np.maximum(predicted[:, None] - np.arange(orders), 0)
        return statistics

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        from sacrebleu.metrics.bleu import BLEU

        orders = self.options.max_ngram_order
        counts = [int(total) for total in totals]
        sys_len, ref_len = counts[:2]
        score = BLEU.compute_bleu(
            # Slices are copies, which matters: add-k adds to the lists it is given.
            correct=counts[2 : 2 + orders],
            total=counts[2 + orders :],
            sys_len=sys_len,
            ref_len=ref_len,
            smooth_method=self.options.smooth_method,
            smooth_value=self.options.smooth_value,
            effective_order=self.options.effective_order or per_row,
            max_ngram_order=orders,
        )
        names = ["bleu", *(f"bleu.precision_{n + 1}" for n in range(orders)), "bleu.bp"]
        values = [score.score, *score.precisions, score.bp]
        defined = ref_len > 0 or any(counts[2 : 2 + orders])
        return {
            **{name: value if defined else None for name, value in zip(names, values, strict=True)},
            "bleu.sys_len": sys_len,
            "bleu.ref_len": ref_len,
        }

    def example_scores(self, statistics: Floats) -> dict[str, Floats]:
        scores = np.full(len(statistics), np.nan)
        scores[statistics[:, 1] > 0] = 0.0
        orders = self.options.max_ngram_order
        # Without any match the score is 0; a match needs a token on both sides.
        matching = np.flatnonzero(statistics[:, 2 : 2 + orders].any(axis=1))
        scores[matching] = sentence_bleu(
            statistics[matching], self.options.smooth_method, self.options.smooth_value
        )
        return {"bleu": scores}

    def signature(self, references_per_row: int | None = None) -> str:
        from sacrebleu.metrics.bleu import BLEU

        options = self.options
        oracle = BLEU(
            lowercase=options.lowercase,
            tokenize=options.tokenize,
            smooth_method=options.smooth_method,
            smooth_value=options.smooth_value,
            max_ngram_order=options.max_ngram_order,
            effective_order=options.effective_order,
        )
        oracle.num_refs = references_per_row or -1
        signature = oracle.get_signature()
        if options.max_ngram_order != BleuOptions().max_ngram_order:
            signature.update("order", options.max_ngram_order)  # sacreBLEU leaves it out
        return str(signature)
