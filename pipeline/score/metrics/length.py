"""Length: tokens of the predictions over tokens of the references, and both per row.

Tokens are BLEU's (``tokenize`` as there). Of several references the one closest in length counts,
the shorter of two, so that ``length_ratio`` is the ratio that sacreBLEU prints beside BLEU. The
details are mean tokens per row.

Undefined where the references have no token; the details only for a set without rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from itertools import chain

import numpy as np

from pipeline.config import Config
from pipeline.score.metrics.base import Column, Floats, Metric, Scores, check_rows
from pipeline.score.ngrams import closest_lengths, make_sides
from pipeline.score.words import SacrebleuTokenizer, require_tokenizer, split_words


class LengthOptions(Config, frozen=True):
    """Options of ``length``.

    Attributes:
        tokenize: how words are found; a tokenizer of sacreBLEU.
    """

    tokenize: SacrebleuTokenizer = "13a"


class Length(Metric):
    """See the module.

    Raises:
        ConfigError: the tokenizer needs what is not installed.
    """

    options_type = LengthOptions
    scale = 2.0  # of the histogram: 1 is in the middle

    def __init__(self, options: LengthOptions | None = None) -> None:
        self.options: LengthOptions = options or LengthOptions()
        self.headline = ("length_ratio",)
        names = ("rows", "prediction_tokens", "reference_tokens")
        self.columns = tuple(Column(f"length.{name}", integer=True) for name in names)
        require_tokenizer(self.options.tokenize, "score.metrics.length.tokenize")

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        check_rows(predictions, references)
        rows = len(predictions)
        texts = [*predictions, *chain.from_iterable(references)]
        counts = split_words(texts, self.options.tokenize).counts
        closest = closest_lengths(counts, make_sides(references), rows)
        return np.column_stack((np.ones(rows), counts[:rows], closest)).astype(np.float64)

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        rows, predicted, referenced = totals
        return {
            "length_ratio": predicted / referenced if referenced else None,
            "length.prediction_tokens": predicted / rows if rows else None,
            "length.reference_tokens": referenced / rows if rows else None,
        }

    def signature(self, references_per_row: int | None = None) -> str:
        return (
            f"nrefs:{references_per_row or 'var'}|tok:{self.options.tokenize}"
            f"|version:{version('sacrebleu')}"
        )
