"""The cutting of fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ConfigError
from pipeline.predict.prompt import PromptBuilder
from pipeline.predict.template import Template


def characters(texts: list[str]) -> list[list[int]]:
    """A tokenizer of one token per character, between two marks."""
    return [[0, *map(ord, text), 1] for text in texts]


def builder(template: str, columns: list[str], limit: int | None) -> PromptBuilder:
    return PromptBuilder(Template(template, columns), characters, limit)


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
