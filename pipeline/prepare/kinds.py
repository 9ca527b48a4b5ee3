"""One Arrow type for a column of JSON values, whatever order they come in.

JSON has no column types, and a reader that guesses from the first block changes its mind, or
fails, at the thousandth row. Here the type depends on the set of values alone:

* all strings, all booleans, all integers: string, bool, int64;
* numbers, some of them with a fraction: float64;
* lists of any of these: a list of that type;
* anything mixed, integers beyond 64 bits, and integers beyond 2^53 among fractions (a float64
  would change them): text, each value as Python prints it, but NaN and infinite ones as null:
  ``nan`` in a text would be a word.

Null fits every type; a column of nulls is text. An object, a list in a list, and lists mixed with
other values are errors.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

_TYPES: dict[frozenset[str], pa.DataType] = {
    frozenset({"bool"}): pa.bool_(),
    frozenset({"small"}): pa.int64(),
    frozenset({"large"}): pa.int64(),
    frozenset({"small", "large"}): pa.int64(),
    frozenset({"float"}): pa.float64(),
    frozenset({"float", "small"}): pa.float64(),
}


class Kinds:
    """The kinds of value seen in one column."""

    def __init__(self) -> None:
        self._scalars: set[str] = set()
        self._elements: set[str] = set()
        self._lists = False

    def add(self, value: Any) -> None:
        """Note the kind of ``value``.

        Raises:
            ValueError: says why the value does not fit in a column.
        """
        if isinstance(value, list):
            self._lists = True
            for element in value:
                if isinstance(element, list):
                    raise ValueError("a list in a list")
                self._elements.update(_kind(element))
        else:
            self._scalars.update(_kind(value))
        if self._lists and self._scalars:
            raise ValueError("a list in one row and a single value in another")

    def type(self) -> pa.DataType:
        """The column's type."""
        kinds = self._elements if self._lists else self._scalars
        scalar = _TYPES.get(frozenset(kinds), pa.string())
        return pa.list_(scalar) if self._lists else scalar


def _kind(value: Any) -> tuple[str, ...]:
    """The kind of a scalar; nothing for null."""
    if value is None:
        return ()
    if isinstance(value, str):
        check_text(value)
        return ("string",)
    if isinstance(value, bool):
        return ("bool",)
    if isinstance(value, int):
        if abs(value) <= 2**53:
            return ("small",)
        return ("large",) if -(2**63) <= value < 2**63 else ("huge",)
    if isinstance(value, float):
        return ("float",)
    raise ValueError("an object; make a column of what is in it")


def check_text(text: str) -> None:
    """Check that ``text`` can be stored.

    Raises:
        ValueError: it holds half of a surrogate pair, which UTF-8 and Arrow cannot hold.
    """
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise ValueError(
            f"a lone surrogate (U+{code:04X}) at character {error.start}, which no text may hold; "
            "it is half of a character that was cut or wrongly decoded"
        ) from None


def column_array(values: list[Any], type_: pa.DataType) -> pa.Array:
    """``values`` as an array of the type that ``Kinds`` gave for them."""
    if pa.types.is_list(type_) and pa.types.is_string(type_.value_type):
        texts = [None if value is None else [_text(item) for item in value] for value in values]
        return pa.array(texts, type_)
    if pa.types.is_string(type_):
        return pa.array([_text(value) for value in values], type_)
    return pa.array(values, type_)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value)
