"""The values that a template takes from a row: which columns will do, and their text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import DataError, listed, one_line, shown
from pipeline.predict.template import Template


def check_fields(template: Template, schema: pa.Schema) -> None:
    """Check that every field of ``template`` is a column whose values have a text.

    Raises:
        DataError: a column of bytes, lists or structs; names it and its type.
    """
    for name in template.fields:
        kind = _plain_type(schema.field(name).type)
        if pa.types.is_nested(kind) or _is_bytes(kind):
            raise DataError(
                f"the input column {shown(name)} holds {one_line(str(kind))}, which no prompt text "
                "can be made of; make it a column of text, or name another in prepare.input"
            )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """What the values are, under dictionaries and extensions."""
    while isinstance(kind, pa.BaseExtensionType | pa.DictionaryType):
        is_extension = isinstance(kind, pa.BaseExtensionType)
        kind = kind.storage_type if is_extension else kind.value_type
    return kind


def _is_text(kind: pa.DataType) -> bool:
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in checks)


def _is_bytes(kind: pa.DataType) -> bool:
    checks = (
        *(pa.types.is_binary, pa.types.is_large_binary),
        *(pa.types.is_fixed_size_binary, pa.types.is_binary_view),
    )
    return any(check(kind) for check in checks)


def check_not_empty(template: Template, columns: Iterable[pa.Table]) -> None:
    """Check that no row has only empty fields, where the template has no text besides.

    Args:
        template: how a row becomes text.
        columns: the columns ``row``, ``id`` and those of the template's fields, some rows at a
            time.

    Raises:
        DataError: names the first such row.
    """
    for table in columns:
        fields = [table.column(name) for name in template.fields]
        if not all(_is_text(_plain_type(field.type)) for field in fields):
            return  # a number is never empty
        empty = pa.array([True] * table.num_rows)
        for field in fields:
            empty = pc.and_(empty, pc.equal(field.cast(pa.string()), ""))
        place = pc.index(empty, True).as_py()
        if place >= 0:
            row, identifier = (table.column(name)[place].as_py() for name in ("row", "id"))
            raise DataError(
                f"row {row} (id {shown(identifier)}): {listed(template.fields)} is empty and "
                "predict.template has no text besides, so there is no prompt; put some text into "
                "predict.template, or leave the row out of the data set"
            )


def field_texts(columns: Mapping[str, Sequence[object]], first_row: int) -> list[dict[str, str]]:
    """Rows of input values as text; numbers and booleans are written as Python writes them.

    Args:
        columns: column name -> values, all of one length.
        first_row: number of the first row, for the message.

    Raises:
        DataError: a value is null.
    """
    rows = []
    for offset, values in enumerate(zip(*columns.values(), strict=True)):
        texts = dict(zip(columns, values, strict=True))
        for name, value in texts.items():
            if value is None:
                raise DataError(
                    f"row {first_row + offset}: input column {shown(name)} is null; remove the "
                    "row or give it a text, and prepare again"
                )
        rows.append({name: str(value) for name, value in texts.items()})
    return rows
