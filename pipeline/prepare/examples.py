"""Batches of a data set as examples: every row checked, and named when it will not do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import DataError, shown
from pipeline.prepare.roles import Roles
from pipeline.prepare.source import Batch
from pipeline.prepare.texts import references_of, text_of


@dataclass
class Tally:
    """What was seen on the way.

    Attributes:
        rows: number of examples.
        fewest_references: of any example.
        most_references: of any example.
    """

    rows: int = 0
    fewest_references: int = 0
    most_references: int = 0

    def add(self, references: list[list[str]]) -> None:
        counts = [len(texts) for texts in references]
        fewest = min(counts)
        self.fewest_references = min(self.fewest_references, fewest) if self.rows else fewest
        self.most_references = max(self.most_references, *counts)
        self.rows += len(counts)


def to_examples(
    batches: Iterator[Batch], rows: list[int] | None, roles: Roles, schema: pa.Schema, where: str
) -> Iterator[tuple[pa.RecordBatch, list[list[str]]]]:
    """The chosen rows as record batches of ``schema``, each with its references as lists.

    Args:
        batches: the data set.
        rows: numbers of the rows to take, ascending; None is all.
        roles: which column means what.
        schema: of examples.parquet.
        where: how messages name the data set.

    Raises:
        DataError: an id or an input that is null or cannot be stored, or a row without references;
            names the row.
    """
    written = 0
    pending = iter(rows) if rows is not None else None
    upcoming = next(pending, None) if pending is not None else None
    for batch in batches:
        if batch.numbers is not None:
            numbers = batch.numbers
        elif pending is None:
            numbers = list(range(batch.start, batch.start + batch.rows))
        else:
            numbers = []
            while upcoming is not None and upcoming < batch.start + batch.rows:
                numbers.append(upcoming)
                upcoming = next(pending, None)
        if numbers:
            yield _convert(batch.take(numbers), numbers, written, roles, schema, where)
            written += len(numbers)


def _convert(
    batch: Batch, numbers: list[int], written: int, roles: Roles, schema: pa.Schema, where: str
) -> tuple[pa.RecordBatch, list[list[str]]]:
    ids = _ids(batch, numbers, roles, where)
    references = [
        _references(batch, place, roles, f"{where} row {number} (id {shown(ids[place])})")
        for place, number in enumerate(numbers)
    ]
    for name in roles.inputs:
        fault = _input_fault(batch.carried[name]) if name in batch.carried else None
        if fault is not None:
            place, found = fault
            raise DataError(
                f"{where} row {numbers[place]} (id {shown(ids[place])}): the input column "
                f"{shown(name)} is {found}; fill it, or leave the row out of the data set"
            )
    arrays = [
        pa.array(range(written, written + len(numbers)), pa.int64()),
        pa.array(ids, pa.string()),
        pa.array(references, pa.list_(pa.string())),
        *batch.carried.values(),
    ]
    return pa.record_batch(arrays, schema=schema), references


def _input_fault(column: pa.Array) -> tuple[int, str] | None:
    """Place and description of the first value that no prompt can be made of."""
    if column.null_count:
        # A column of text holds as null what was NaN or infinite in JSON; see kinds.
        return column.is_null().index(True).as_py(), "null, NaN or infinite"
    if not pa.types.is_floating(column.type):
        return None
    values = column.cast(pa.float64())  # arrow tells no half floats apart
    place: int = pc.is_finite(values).index(False).as_py()
    if place < 0:
        return None
    return place, "NaN" if math.isnan(values[place].as_py()) else "infinite"


def _ids(batch: Batch, numbers: list[int], roles: Roles, where: str) -> list[str]:
    if roles.id is None:
        return [str(number) for number in numbers]
    ids = []
    for number, value in zip(numbers, batch.texts[roles.id], strict=True):
        try:
            ids.append(text_of(value))
        except ValueError as error:
            raise DataError(
                f"{where} row {number}: the id in column {shown(roles.id)} is {error}; give every "
                "row an id, or set prepare.id to null to number the rows"
            ) from None
    return ids


def _references(batch: Batch, place: int, roles: Roles, row: str) -> list[str]:
    texts: list[str] = []
    several = len(roles.references) > 1
    for name in roles.references:
        try:
            texts += references_of(batch.texts[name][place], optional=several)
        except ValueError as error:
            raise DataError(
                f"{row}: the reference in column {shown(name)} is {error}; every example needs "
                "its references: fill it, or leave the row out of the data set"
            ) from None
    if not texts:
        raise DataError(
            f"{row}: there is no reference in column {' or '.join(map(shown, roles.references))}, "
            "only null; every example needs one: fill it, or leave the row out of the data set"
        )
    return texts
