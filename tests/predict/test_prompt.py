"""Templates, and the cutting of fields."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ConfigError, DataError
from pipeline.predict.fields import check_fields, check_not_empty, field_texts
from pipeline.predict.prompt import PromptBuilder
from pipeline.predict.template import Template


def characters(texts: list[str]) -> list[list[int]]:
    """A tokenizer of one token per character, between two marks."""
    return [[0, *map(ord, text), 1] for text in texts]


def builder(template: str, columns: list[str], limit: int | None) -> PromptBuilder:
    return PromptBuilder(Template(template, columns), characters, limit)


def test_a_template_puts_columns_together() -> None:
    template = Template("{{{question}}} in {my text}: {question}?", ["question", "my text", "more"])
    assert template.fields == ("question", "my text")
    assert template.render({"question": "{why}", "my text": "T"}) == "{{why}} in T: {why}?"


def test_without_a_template_the_one_column_is_the_prompt() -> None:
    assert Template(None, ["text"]).render({"text": "a {b}"}) == "a {b}"


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (None, ["a", "b"], r"several input columns \(a, b\).*'\{a\} \{b\}'"),
        (
            "{documnt}",
            ["document"],
            r"'\{documnt\}' is not an input column \(did you mean document",
        ),
        ("{}", ["document"], "is not an input column"),
        ("{document!r}", ["document"], "takes no format or conversion"),
        ("{document:10}", ["document"], "takes no format or conversion"),
        ("{document.__class__}", ["document"], "is not an input column"),
        ("{document", ["document"], "a brace that is meant as text is written twice"),
        ("no column", ["document"], "names no input column"),
    ],
)
def test_templates_that_cannot_be_meant(text: str, columns: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Template(text, columns)


@given(text=st.text(max_size=60), limit=st.integers(12, 40))
def test_a_long_field_is_cut_and_the_template_is_not(text: str, limit: int) -> None:
    (prompt,) = builder("<{t}> end", ["t"], limit).build([{"t": text}])
    whole = characters([f"<{text}> end"])[0]
    assert prompt.truncated == (len(whole) > limit)
    if not prompt.truncated:
        assert prompt.ids == whole
    else:
        assert len(prompt.ids) == limit  # as much of the field as fits
        assert "".join(map(chr, prompt.ids[1:-1])).endswith("> end")


def test_the_longest_field_is_cut_first_and_the_question_survives() -> None:
    rows = [{"context": "c" * 50, "question": "why?"}]
    (prompt,) = builder("{context}|{question}", ["context", "question"], 20).build(rows)
    assert "".join(map(chr, prompt.ids[1:-1])) == "c" * 13 + "|why?"


def test_fields_are_emptied_one_after_the_other() -> None:
    rows = [{"a": "a" * 30, "b": "b" * 20}]
    (prompt,) = builder("{a}|{b}", ["a", "b"], 8).build(rows)
    assert "".join(map(chr, prompt.ids[1:-1])) == "|" + "b" * 5


def test_a_template_that_does_not_fit_alone_is_an_error() -> None:
    with pytest.raises(ConfigError, match="still has 12 tokens, more than the 11 that fit"):
        builder("a template{t}", ["t"], 11).build([{"t": "x" * 9}])


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


def rows(**columns: Any) -> pa.Table:
    count = len(next(iter(columns.values())))
    ids = [f"id-{row}" for row in range(count)]
    return pa.table({"row": list(range(count)), "id": ids, **columns})


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


def test_only_fields() -> None:
    assert Template(None, ["a"]).only_fields
    assert Template("{a}{b}", ["a", "b"]).only_fields
    assert not Template("{a} {b}", ["a", "b"]).only_fields
    assert not Template("{a}\n", ["a"]).only_fields


def test_values_become_text() -> None:
    columns = {"n": [1, 2.5], "t": ["a", True]}
    assert field_texts(columns, 0) == [{"n": "1", "t": "a"}, {"n": "2.5", "t": "True"}]


def test_a_null_input_names_its_row() -> None:
    with pytest.raises(DataError, match="row 41: input column 't' is null"):
        field_texts({"t": ["a", None]}, 40)
