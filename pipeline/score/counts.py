"""What had to be decided about the texts of some rows, as numbers that add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

import numpy as np
import pyarrow as pa

from pipeline.score.buffers import from_numpy
from pipeline.score.texts import Texts


@dataclass
class Counts:
    """How often what was found; see ``docs/scoring.md``.

    Attributes:
        empty_predictions: rows whose prediction is blank.
        empty_references: rows with nothing but blank references.
        dropped_references: blank references that stood beside others.
        null_references: references that are null, and rows that have none.
        out_of_vocabulary_ids: token ids that the tokenizer does not know.
        references_per_row: number of references -> rows.
    """

    empty_predictions: int = 0
    empty_references: int = 0
    dropped_references: int = 0
    null_references: int = 0
    out_of_vocabulary_ids: int = 0
    references_per_row: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, texts: Texts) -> Counts:
        """The counts of some rows."""
        return cls(
            empty_predictions=sum(1 for text in texts.predictions if not text.strip()),
            empty_references=texts.empty_references,
            dropped_references=texts.dropped_references,
            null_references=texts.null_references,
            out_of_vocabulary_ids=texts.unknown_ids,
            references_per_row=Counter(map(len, texts.references)),
        )

    def merge(self, other: Counts) -> None:
        """Add all that was added to ``other``."""
        for name in _SINGLE:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.references_per_row += other.references_per_row

    def to_table(self) -> pa.Table:
        """As one row of ``SCHEMA``."""
        single = [_array([getattr(self, name)]) for name in _SINGLE]
        per_row = sorted(self.references_per_row.items())
        ends = from_numpy(np.array([0, len(per_row)], np.int32))
        lists = [
            pa.ListArray.from_arrays(ends, _array([pair[place] for pair in per_row]))
            for place in (0, 1)
        ]
        return pa.Table.from_arrays([*single, *lists], schema=SCHEMA)

    @classmethod
    def from_table(cls, table: pa.Table) -> Counts:
        """What ``to_table`` wrote."""
        row = table.to_pylist()[0]
        per_row = dict(zip(row.pop("references"), row.pop("rows"), strict=True))
        return cls(**row, references_per_row=Counter(per_row))


def _array(values: list[int]) -> pa.Array:
    return from_numpy(np.array(values, np.int64))


_SINGLE = tuple(entry.name for entry in fields(Counts) if entry.name != "references_per_row")
SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.int64()) for name in _SINGLE),
        pa.field("references", pa.list_(pa.int64())),
        pa.field("rows", pa.list_(pa.int64())),
    ]
)
