"""ROUGE (Lin 2004): overlap of n-grams, or the longest common subsequence, with the references.

Per row and type the statistics are precision, recall and F1, each in 0–1, as ``rouge_score`` (the
reimplementation that papers quote) gives them; the score of a set is their exact mean. The Rust
port ``rouge_score_rs`` computes the same bits 30 times as fast; where it cannot be imported,
``rouge_score`` does it.

* Several references: per type the one with the best F1, as ``score_multi`` has it.
* rougeL takes the text as one sentence, rougeLsum as several: its lines, or what ``sentences``
  finds (``lsum: rules``).
* A row without a word on one side scores 0, as in ``rouge_score``, so that every row counts in
  the mean. Undefined only for a set without rows.
* ``rouge_tokenizers`` says what a word is. Where the tokenizer throws away more than 5 % of the
  letters of the references, a warning names another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.config import Config
from pipeline.score.letters import count_letters
from pipeline.score.metrics.base import Column, Floats, Metric, Scores, check_rows
from pipeline.score.rouge_library import find_library, library_version, load_scorer, score_pairs
from pipeline.score.rouge_tokenizers import DEFAULT, NATIVE, check_tokenizer, load_tokenizer
from pipeline.score.sentences import split_sentences

Type = Annotated[str, msgspec.Meta(pattern=r"^rouge([1-9]|L|Lsum)$")]
PARTS = ("precision", "recall", "fmeasure")
LETTERS = ("letters", "letters_dropped", "letters_unspaced")
TOLERATED = 0.05  # share of the letters that may be dropped without a warning
LCS, LSUM = "rougeL", "rougeLsum"


class RougeOptions(Config, frozen=True):
    """Options of ``rouge``.

    Attributes:
        types: which of rouge1 … rouge9, rougeL, rougeLsum.
        stemmer: compare stems (Porter) of words longer than three letters; with the tokenizer
            ``default`` alone.
        tokenizer: ``default``, ``unicode``, ``character``, a tokenizer of sacreBLEU, or
            ``package.module:function``; see ``rouge_tokenizers``.
        lsum: what a sentence is for rougeLsum: a line, or what the rules in ``sentences`` find.
    """

    types: Annotated[tuple[Type, ...], msgspec.Meta(min_length=1)] = (
        "rouge1",
        "rouge2",
        "rougeL",
        "rougeLsum",
    )
    stemmer: bool = False
    tokenizer: str = DEFAULT
    lsum: Literal["newline", "rules"] = "newline"

    def __post_init__(self) -> None:
        if self.stemmer and self.tokenizer != DEFAULT:
            raise ValueError(f"the stemmer does not work with the tokenizer {self.tokenizer}")
        if len(set(self.types)) < len(self.types):
            raise ValueError(f"a type stands twice in {list(self.types)}")


class Rouge(Metric):
    """See the module.

    Raises:
        ConfigError: the tokenizer is unknown or cannot be used.
    """

    options_type = RougeOptions

    def __init__(self, options: RougeOptions | None = None) -> None:
        self.options: RougeOptions = options or RougeOptions()
        check_tokenizer(self.options.tokenizer)
        self.headline = self.options.types
        # The mean needs to know how many rows were added: a statistic like the others.
        self.columns = (
            Column("rouge.rows", integer=True),
            *(Column(f"{kind}.{part}", integer=False) for kind in self.headline for part in PARTS),
            *(Column(f"rouge.{name}", integer=True) for name in LETTERS),
        )

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        check_rows(predictions, references)
        statistics = np.ones((len(predictions), len(self.columns)))
        statistics[:, -len(LETTERS) :] = self._letters(references)
        scores = statistics[:, 1 : -len(LETTERS)]
        on_text = tuple(kind for kind in self.options.types if kind != LSUM)
        if on_text:
            scores[:, self._places(on_text)] = self._scores(on_text, predictions, references)
        if LSUM in self.options.types:
            self._add_lsum(scores, predictions, references)
        return statistics

    def _add_lsum(
        self, scores: Floats, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> None:
        """Fill rougeLsum in; a row of one line per text has it from rougeL, at a third the cost."""
        lsum = self._places((LSUM,))
        rows: Sequence[int] = range(len(predictions))
        if self.options.lsum == "rules":
            predictions = list(map(_on_lines, predictions))
            references = [list(map(_on_lines, texts)) for texts in references]
        elif LCS in self.options.types:
            scores[:, lsum] = scores[:, self._places((LCS,))]
            rows = [row for row in rows if "\n" in "".join((predictions[row], *references[row]))]
        scores[np.ix_(rows, lsum)] = self._scores(
            (LSUM,), [predictions[row] for row in rows], [references[row] for row in rows]
        )

    def _places(self, types: tuple[str, ...]) -> list[int]:
        """Columns of ``types`` among those of all types."""
        return [
            len(PARTS) * self.options.types.index(kind) + part
            for kind in types
            for part in range(len(PARTS))
        ]

    def _letters(self, references: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """(rows, LETTERS) of all references of a row."""
        rows = np.repeat(np.arange(len(references)), list(map(len, references)))
        counts = count_letters(list(chain.from_iterable(references)), self._drops)
        return np.column_stack(
            [np.bincount(rows, weights=count, minlength=len(references)) for count in counts]
        )

    def _drops(self, letter: str) -> bool:
        """Whether the tokenizer throws ``letter``, which is not ASCII, away."""
        if self.options.tokenizer in NATIVE:
            return False
        if self.options.tokenizer == DEFAULT:
            return not any(map(str.isascii, letter.lower()))
        # Four times over: a function of the person's may skip short words.
        tokens = load_tokenizer(self.options.tokenizer).tokenize(4 * letter)
        return not any(map(str.isalpha, "".join(tokens)))

    def _scores(
        self,
        types: tuple[str, ...],
        predictions: Sequence[str],
        references: Sequence[Sequence[str]],
    ) -> Floats:
        """(rows, types · PARTS)."""
        scorer = load_scorer(find_library(), types, self.options.stemmer, self.options.tokenizer)
        single = [row for row, texts in enumerate(references) if len(texts) == 1]
        several = [row for row, texts in enumerate(references) if len(texts) > 1]
        scores = np.empty((len(predictions), len(types) * len(PARTS)))
        scores[single] = _matrix(
            types,
            score_pairs(
                scorer, [references[row][0] for row in single], [predictions[row] for row in single]
            ),
            len(single),
        )
        scores[several] = _matrix(
            types,
            (scorer.score_multi(list(references[row]), predictions[row]) for row in several),
            len(several),
        )
        return scores

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        rows, sums = totals[0], totals[1 : -len(LETTERS)]
        means: list[float | None] = [total / rows if rows else None for total in sums]
        names = [column.name for column in self.columns[1 : -len(LETTERS)]]
        details = dict(zip(names, means, strict=True))
        return {kind: details[f"{kind}.fmeasure"] for kind in self.headline} | {
            name: mean for name, mean in details.items() if not name.endswith(".fmeasure")
        }

    def example_scores(self, statistics: Floats) -> dict[str, Floats]:
        # The sum of one row is the row: its mean is its F1.
        names = [column.name for column in self.columns]
        return {
            kind: statistics[:, names.index(f"{kind}.fmeasure")].copy() for kind in self.headline
        }

    def warnings(self, totals: Sequence[int | float]) -> list[str]:
        letters, dropped, unspaced = totals[-len(LETTERS) :]
        if dropped <= TOLERATED * letters:
            return []
        better = "character" if 2 * unspaced > dropped else "unicode"
        return [
            f"the tokenizer {self.options.tokenizer} throws away {dropped / letters:.0%} of the "
            f"letters of the references, so these scores say little; use tokenizer: {better}"
        ]

    def signature(self, references_per_row: int | None = None) -> str:
        return "|".join(
            [
                f"nrefs:{references_per_row or 'var'}",
                f"stem:{'yes' if self.options.stemmer else 'no'}",
                f"tok:{self.options.tokenizer.replace(':', '.')}",
                f"lsum:{self.options.lsum}",
                f"version:{library_version(find_library())}",
            ]
        )


def _on_lines(text: str) -> str:
    return "\n".join(split_sentences(text))


def _matrix(types: tuple[str, ...], scored: Iterable[dict[str, Any]], rows: int) -> Floats:
    # Each row is {type: (precision, recall, fmeasure)}.
    pick = itemgetter(*types) if len(types) > 1 else lambda row: (row[types[0]],)
    flat = chain.from_iterable(chain.from_iterable(map(pick, scored)))
    width = len(types) * len(PARTS)
    return np.fromiter(flat, np.float64, rows * width).reshape(rows, width)
