"""The rows of a chunk, checked one by one: what score would refuse, and what it would count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.score.buffers import one_array, to_numpy
from pipeline.score.decode import Decoder

# Score has a rule for these; see texts.
_MAY_BE_NULL = {"references", "source", "logprob", "nll", "label_tokens"}
_NAMED_ROWS = 5


@dataclass
class Findings:
    """What was found in some rows.

    Attributes:
        faults: what is wrong -> numbers of the rows.
        counts: what score counts -> how often.
    """

    faults: dict[str, list[int]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def fault(self, what: str, rows: Iterable[int]) -> None:
        """Add rows; nothing happens where there are none."""
        if found := list(rows):
            self.faults.setdefault(what, []).extend(found)

    def count(self, what: str, number: int) -> None:
        """Add to a count."""
        if number:
            self.counts[what] = self.counts.get(what, 0) + number

    def lines(self) -> Iterator[str]:
        """The faults, each with its first rows."""
        for what, rows in self.faults.items():
            shown = ", ".join(map(str, rows[:_NAMED_ROWS]))
            more = f" and {len(rows) - _NAMED_ROWS} more" if len(rows) > _NAMED_ROWS else ""
            yield f"{what} in {'row' if len(rows) == 1 else 'rows'} {shown}{more}"


def check_rows(table: pa.Table, keep: tuple[str, ...], decoder: Decoder | None) -> Findings:
    """Check rows of a chunk, whose columns and row numbers are right.

    Args:
        table: the rows.
        keep: kept columns, which may hold what they like.
        decoder: of the set; None for a set of texts, or where it has no tokenizer.
    """
    found = Findings()
    rows = to_numpy(one_array(table.column("row")))
    whole = np.ones(len(table), np.bool_)  # rows whose ids can be decoded
    for name in table.column_names:
        column = one_array(table.column(name))
        if column.null_count and name not in (*keep, *_MAY_BE_NULL):
            null = _flags(column.is_null())
            found.fault(f"{name} is null", rows[null].tolist())
            whole &= ~null if name == "prediction_ids" else True
    if "prediction_ids" in table.column_names:
        ids = one_array(table.column("prediction_ids"))
        whole &= ~_check_ids(ids, rows, found)
        if decoder is not None:
            _decode(ids.filter(pa.array(whole.tolist(), pa.bool_())), decoder, found)
    else:
        texts = one_array(table.column("prediction")).to_pylist()
        blank = sum(1 for text in texts if text is not None and not text.strip())
        found.count("empty predictions", blank)
    _count_references(one_array(table.column("references")), found)
    return found


def _check_ids(ids: pa.Array, rows: NDArray[np.int64], found: Findings) -> NDArray[np.bool_]:
    """(rows,) which have ids that nothing can decode."""
    values = ids.flatten()
    null = _flags(values.is_null())
    negative = np.array([value is not None and value < 0 for value in values.to_pylist()], np.bool_)
    present = np.flatnonzero(~_flags(ids.is_null()))
    lengths = [len(each) for each in ids.to_pylist() if each is not None]
    owner = np.repeat(present, lengths)
    found.fault("a token id is null", rows[np.unique(owner[null])].tolist())
    found.fault("a token id is negative", rows[np.unique(owner[negative])].tolist())
    bad = np.zeros(len(ids), np.bool_)
    bad[owner[null | negative]] = True
    return bad


def _decode(ids: pa.Array, decoder: Decoder, found: Findings) -> None:
    found.count("token ids beyond the vocabulary", decoder.unknown_ids(ids))
    texts = decoder.decode(ids)
    found.count("empty predictions", sum(1 for text in texts if not text.strip()))


def _count_references(lists: pa.Array, found: Findings) -> None:
    for references in lists.to_pylist():
        present = [text for text in references or () if text is not None]
        found.count("null references", len(references or ()) - len(present))
        found.count("rows without references", not references)
        if references and not any(text.strip() for text in present):
            found.count("rows with nothing but blank references", 1)


def _flags(array: pa.Array) -> NDArray[np.bool_]:
    return np.array(array.to_pylist(), np.bool_)
