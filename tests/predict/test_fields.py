"""Columns that a prompt can be made of, and their text."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from pipeline.errors import DataError
from pipeline.predict.fields import check_fields, check_not_empty, field_texts
from pipeline.predict.template import Template


def rows(**columns: Any) -> pa.Table:
    count = len(next(iter(columns.values())))
    ids = [f"id-{row}" for row in range(count)]
    return pa.table({"row": list(range(count)), "id": ids, **columns})


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.large_binary(),
        pa.binary(4),
        pa.list_(pa.string()),
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        pa.map_(pa.string(), pa.string()),
    ],
)
def test_a_column_without_a_text_is_refused(kind: pa.DataType) -> None:
    schema = pa.schema([("document", pa.string()), ("audio", kind)])
    check_fields(Template("{document}", ["document", "audio"]), schema)
    message = re.escape(f"the input column 'audio' holds {str(kind)[:20]}")
    with pytest.raises(DataError, match=message + ".*, which no prompt text can be made of; make"):
        check_fields(Template("{document} {audio}", ["document", "audio"]), schema)


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.int16(), pa.float32(), pa.bool_(), pa.date32()]
    + [pa.dictionary(pa.int32(), pa.string())],
)
def test_a_column_with_a_text_is_not(kind: pa.DataType) -> None:
    check_fields(Template(None, ["x"]), pa.schema([("x", kind)]))


def test_the_first_row_without_a_prompt_is_named() -> None:
    template = Template("{a}{b}", ["a", "b"])
    good = rows(a=["x", ""], b=["", "y"])
    check_not_empty(template, [good])
    bad = rows(a=["", "", ""], b=["y", "", ""])
    with pytest.raises(DataError, match=r"^row 1 \(id 'id-1'\): a, b is empty .*no prompt; put"):
        check_not_empty(template, [good, bad])
    check_not_empty(
        template, [rows(a=[1, 0], b=["", ""]), rows(a=["", ""], b=[0.5, 1])]
    )  # a number is never empty
    coded = pa.array(["x", ""]).dictionary_encode()
    with pytest.raises(DataError, match="row 1 "):
        check_not_empty(Template("{a}", ["a"]), [rows(a=coded)])


def test_values_become_text() -> None:
    columns = {"n": [1, 2.5], "t": ["a", True]}
    assert field_texts(columns, 0) == [{"n": "1", "t": "a"}, {"n": "2.5", "t": "True"}]


def test_a_null_input_names_its_row() -> None:
    with pytest.raises(DataError, match="row 41: input column 't' is null"):
        field_texts({"t": ["a", None]}, 40)
