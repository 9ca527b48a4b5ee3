"""Repetition in the predictions: distinct n-grams, and the share of repeated ones.

``distinct1``, ``distinct2``, …: different n-grams over all n-grams, each text counted for itself
and the counts summed over rows. (Li et al. 2016 count different n-grams of the whole set once;
such a number depends on the size of the set, and cannot be added.) ``repeated4``: the share of
4-grams that stand earlier in the same text, 1 − different / all (Welleck et al. 2020, seq-rep-4,
there averaged over texts; here longer texts count more).

Tokens are BLEU's (``tokenize`` as there), in lower case where asked. References play no part.
Undefined where no prediction is as long as the n-gram.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import msgspec
import numpy as np

from pipeline.config import Config
from pipeline.score.metrics.base import Column, Floats, Metric, Scores, check_rows
from pipeline.score.ngrams import distinct_ngrams
from pipeline.score.words import SacrebleuTokenizer, require_tokenizer, split_words

Order = Annotated[int, msgspec.Meta(ge=1)]
# Rows whose arrays fit the processor's cache; more rows at once are slower.
BLOCK_ROWS = 2048


class RepetitionOptions(Config, frozen=True):
    """Options of ``repetition``.

    Attributes:
        distinct: lengths of the n-grams of distinct-n.
        repeated: length of the n-grams whose repetitions are counted.
        tokenize: how words are found; a tokenizer of sacreBLEU.
        lowercase: compare in lower case.
    """

    distinct: tuple[Order, ...] = (1, 2, 3)
    repeated: Order = 4
    tokenize: SacrebleuTokenizer = "13a"
    lowercase: bool = False

    def __post_init__(self) -> None:
        if len(set(self.distinct)) < len(self.distinct):
            raise ValueError(f"a length stands twice in {list(self.distinct)}")


class Repetition(Metric):
    """See the module.

    Raises:
        ConfigError: the tokenizer needs what is not installed.
    """

    options_type = RepetitionOptions

    def __init__(self, options: RepetitionOptions | None = None) -> None:
        self.options: RepetitionOptions = options or RepetitionOptions()
        distinct = [f"distinct{order}" for order in self.options.distinct]
        self.headline = (*distinct, f"repeated{self.options.repeated}")
        self._orders = sorted({*self.options.distinct, self.options.repeated})
        self.columns = tuple(
            Column(f"repetition.{part}_{order}", integer=True)
            for order in self._orders
            for part in ("different", "all")
        )
        require_tokenizer(self.options.tokenize, "score.metrics.repetition.tokenize")

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        check_rows(predictions, references)
        blocks = [
            self._block(predictions[start : start + BLOCK_ROWS])
            for start in range(0, len(predictions), BLOCK_ROWS)
        ]
        return np.concatenate([np.empty((0, len(self.columns))), *blocks])

    def _block(self, predictions: Sequence[str]) -> Floats:
        texts = [text.lower() for text in predictions] if self.options.lowercase else predictions
        words = split_words(texts, self.options.tokenize)
        different = distinct_ngrams(words, self._orders[-1])
        statistics = np.empty((len(texts), len(self.columns)))
        for index, order in enumerate(self._orders):
            statistics[:, 2 * index] = different[:, order - 1]
            statistics[:, 2 * index + 1] = np.maximum(words.counts - (order - 1), 0)
        return statistics

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        counts = dict(zip(self._orders, zip(totals[::2], totals[1::2], strict=True), strict=True))
        shares = {
            order: different / everything if everything else None
            for order, (different, everything) in counts.items()
        }
        scores = {f"distinct{order}": shares[order] for order in self.options.distinct}
        share = shares[self.options.repeated]
        scores[self.headline[-1]] = None if share is None else 1 - share
        return scores

    def signature(self, references_per_row: int | None = None) -> str:
        case = "lc" if self.options.lowercase else "mixed"
        return f"case:{case}|tok:{self.options.tokenize}|version:{version('sacrebleu')}"
