"""Templates: what is text, and what is a field."""

from __future__ import annotations

import pytest

from pipeline.errors import ConfigError
from pipeline.predict.template import Template


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


def test_only_fields() -> None:
    assert Template(None, ["a"]).only_fields
    assert Template("{a}{b}", ["a", "b"]).only_fields
    assert not Template("{a} {b}", ["a", "b"]).only_fields
    assert not Template("{a}\n", ["a"]).only_fields
