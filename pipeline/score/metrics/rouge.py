"""ROUGE (Lin 2004): overlap of n-grams, or the longest common subsequence, with the references.

Per row and type the statistics are precision, recall and F1, each in 0–1, as ``rouge_score`` (the
reimplementation that papers quote) gives them; the score of a set is their exact mean. The Rust
port ``rouge_score_rs`` computes the same bits 30 times as fast; where it cannot be imported,
``rouge_score`` does it.

* Several references: per type the one with the best F1, as ``score_multi`` has it.
* rougeLsum takes each line as a sentence; rougeL takes the text as one.
* A row without a word on one side scores 0, as in ``rouge_score``, so that every row counts in
  the mean. Undefined only for a set without rows.
* Tokens are runs of ``[a-z0-9]`` after lowercasing: text in other scripts has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from operator import itemgetter
from typing import Annotated, Any

import msgspec
import numpy as np

from pipeline.config import Config
from pipeline.errors import MissingExtraError
from pipeline.score.metrics.base import Column, Floats, Metric, Scores, check_rows

Type = Annotated[str, msgspec.Meta(pattern=r"^rouge([1-9]|L|Lsum)$")]
# In order of preference; the same numbers from both.
LIBRARIES = ("rouge_score_rs.rouge_scorer", "rouge_score.rouge_scorer")
PARTS = ("precision", "recall", "fmeasure")


class RougeOptions(Config, frozen=True):
    """Options of ``rouge``.

    Attributes:
        types: which of rouge1 … rouge9, rougeL, rougeLsum.
        stemmer: compare stems (Porter) of words longer than three letters.
    """

    types: Annotated[tuple[Type, ...], msgspec.Meta(min_length=1)] = (
        "rouge1",
        "rouge2",
        "rougeL",
        "rougeLsum",
    )
    stemmer: bool = False

    def __post_init__(self) -> None:
        if len(set(self.types)) < len(self.types):
            raise ValueError(f"a type stands twice in {list(self.types)}")


class Rouge(Metric):
    """See the module."""

    options_type = RougeOptions
    scale = 1.0

    def __init__(self, options: RougeOptions | None = None) -> None:
        self.options: RougeOptions = options or RougeOptions()
        self.headline = self.options.types
        # The mean needs to know how many rows were added: a statistic like the others.
        self.columns = (
            Column("rouge.rows", integer=True),
            *(Column(f"{kind}.{part}", integer=False) for kind in self.headline for part in PARTS),
        )

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        check_rows(predictions, references)
        scorer = _scorer(_library(), self.options.types, self.options.stemmer)
        single = [row for row, texts in enumerate(references) if len(texts) == 1]
        several = [row for row, texts in enumerate(references) if len(texts) > 1]
        statistics = np.ones((len(predictions), len(self.columns)))
        statistics[single, 1:] = self._matrix(
            _score_pairs(
                scorer, [references[row][0] for row in single], [predictions[row] for row in single]
            ),
            len(single),
        )
        statistics[several, 1:] = self._matrix(
            (scorer.score_multi(list(references[row]), predictions[row]) for row in several),
            len(several),
        )
        return statistics

    def _matrix(self, scored: Iterable[dict[str, Any]], rows: int) -> Floats:
        # Each row is {type: (precision, recall, fmeasure)}.
        types = self.options.types
        pick = itemgetter(*types) if len(types) > 1 else lambda row: (row[types[0]],)
        flat = chain.from_iterable(chain.from_iterable(map(pick, scored)))
        width = len(types) * len(PARTS)
        return np.fromiter(flat, np.float64, rows * width).reshape(rows, width)

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        rows, *sums = totals
        means: list[float | None] = [total / rows if rows else None for total in sums]
        details = dict(zip([column.name for column in self.columns[1:]], means, strict=True))
        return {kind: details[f"{kind}.fmeasure"] for kind in self.headline} | {
            name: mean for name, mean in details.items() if not name.endswith(".fmeasure")
        }

    def example_scores(self, statistics: Floats) -> dict[str, Floats]:
        # The sum of one row is the row: its mean is its F1.
        names = [column.name for column in self.columns]
        return {
            kind: statistics[:, names.index(f"{kind}.fmeasure")].copy() for kind in self.headline
        }

    def signature(self, references_per_row: int | None = None) -> str:
        return "|".join(
            [
                f"nrefs:{references_per_row or 'var'}",
                f"stem:{'yes' if self.options.stemmer else 'no'}",
                "tok:default",
                "lsum:newline",
                f"version:{_version(_library())}",
            ]
        )


def _library() -> str:
    """The module whose ``RougeScorer`` scores here."""
    for module in LIBRARIES:
        try:
            import_module(module)
        except ImportError:
            continue
        return module
    raise MissingExtraError(
        "the metric rouge needs rouge-score-rs, or rouge-score where there is no wheel of it: "
        "pip install rouge-score-rs"
    )


def _version(library: str) -> str:
    distribution = library.partition(".")[0].replace("_", "-")
    return f"{distribution}-{version(distribution)}"


@lru_cache(maxsize=8)
def _scorer(library: str, types: tuple[str, ...], stemmer: bool) -> Any:
    return import_module(library).RougeScorer(list(types), use_stemmer=stemmer)


def _score_pairs(
    scorer: Any, references: list[str], predictions: list[str]
) -> Iterable[dict[str, Any]]:
    if hasattr(scorer, "score_batch"):
        scored: list[dict[str, Any]] = scorer.score_batch(references, predictions)
        return scored
    return map(scorer.score, references, predictions)
