"""What messages show of the values they name."""

from __future__ import annotations

import pytest

from pipeline.errors import did_you_mean, listed, one_line, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("id-1", "'id-1'"),
        ("it's", '"it\'s"'),
        ("two\nlines", r"'two\nlines'"),
        ("x" * 60, f"'{'x' * 60}'"),
        (3, "3"),
        (None, "None"),
        ("北京", "'北京'"),
    ],
)
def test_a_value_is_shown_on_one_line(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize("value", ["x" * 9000, "\n" * 9000, ["x" * 50] * 50, "'" * 61 + '"'])
def test_what_is_long_is_cut(value: object) -> None:
    assert len(shown(value)) <= 62
    assert "…" in shown(value)
    assert "\n" not in shown(value)


def test_names_are_listed_on_one_line() -> None:
    assert listed(["a", "b\nc", "é"]) == r"a, b\nc, é"
    assert listed(["x" * 100]) == "x" * 59 + "…"
    names = [str(number) for number in range(500)]
    assert listed(names) == ", ".join(names[:20]) + ", … (500 in all)"
    assert one_line("a\tb\u2028c") == r"a\tb\u2028c"


def test_close_matches_are_on_one_line() -> None:
    assert did_you_mean("summry\n", ["summary\n"]) == r" (did you mean summary\n?)"
    assert did_you_mean("z", ["b", "a\n"]) == r" (known: a\n, b)"
