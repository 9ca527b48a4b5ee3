"""WER and CER, word and character error rate, from jiwer's counts (Morris et al. 2004).

The fewest substitutions, deletions and insertions that turn a reference into the prediction, over
the words (or characters) of the reference, as a share; 0 is best and more than 1 is possible.
Counts are summed over rows before they are divided, never rates averaged. Texts are prepared as
jiwer does by default: stripped; for WER, runs of white space made one space, and words are what
single spaces separate. Case and punctuation count.

* Several references: the one with the fewest errors; of those the longest, for the lowest rate; of
  those the first.
* Undefined where all references are empty. Insertions against one empty reference among others
  count.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np

from pipeline.score.metrics.base import Column, Floats, Metric, NoOptions, Scores
from pipeline.score.metrics.pairs import pair_up

COUNTS = ("hits", "substitutions", "deletions", "insertions")
_KINDS = ("equal", "substitute", "delete", "insert")  # jiwer's names, in the order of COUNTS


class _ErrorRate(Metric):
    name: ClassVar[str]
    lower_is_better = True

    def __init__(self, options: NoOptions | None = None) -> None:
        super().__init__(options)
        self.headline = (self.name,)
        self.columns = tuple(Column(f"{self.name}.{count}", integer=True) for count in COUNTS)

    @staticmethod
    @abstractmethod
    def _align(references: list[str], predictions: list[str]) -> Any:
        """jiwer's output for some pairs."""

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        pairs = pair_up(predictions, references)
        if not predictions:
            return np.empty((0, len(COUNTS)))
        aligned = self._align(pairs.references, pairs.predictions)
        counts = np.array([_count(chunks) for chunks in aligned.alignments], dtype=np.float64)
        errors = counts[:, 1:].sum(axis=1)
        lengths = counts[:, :3].sum(axis=1)
        chosen: Floats = counts[pairs.preferred(errors, -lengths)]
        return chosen

    def scores(self, totals: Sequence[int | float], per_row: bool = False) -> Scores:
        hits, substitutions, deletions, insertions = totals
        length = hits + substitutions + deletions
        errors = substitutions + deletions + insertions
        details = {column.name: total for column, total in zip(self.columns, totals, strict=True)}
        return {self.name: errors / length if length else None, **details}

    def signature(self, references_per_row: int | None = None) -> str:
        return f"nrefs:{references_per_row or 'var'}|tok:default|version:jiwer-{version('jiwer')}"


class Wer(_ErrorRate):
    """Word error rate; see the module."""

    name = "wer"

    @staticmethod
    def _align(references: list[str], predictions: list[str]) -> Any:
        from jiwer import process_words

        return process_words(references, predictions)


class Cer(_ErrorRate):
    """Character error rate; see the module."""

    name = "cer"

    @staticmethod
    def _align(references: list[str], predictions: list[str]) -> Any:
        from jiwer import process_characters

        return process_characters(references, predictions)


def _count(chunks: Sequence[Any]) -> list[int]:
    counts: Counter[str] = Counter()
    for chunk in chunks:
        # An insertion has no extent in the reference, a deletion none in the prediction.
        counts[chunk.type] += max(
            chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx
        )
    return [counts[kind] for kind in _KINDS]
