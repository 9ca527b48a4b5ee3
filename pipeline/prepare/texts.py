"""One value of an id or reference column as text.

Strings stay as they are; numbers and booleans become what Python prints (``3``, ``0.5``,
``True``), as people expect of a column of labels. Anything else is an error rather than a guess.
"""

from __future__ import annotations

import math
from typing import Any

from pipeline.prepare.kinds import check_text


def text_of(value: Any) -> str:
    """``value`` as text.

    Raises:
        ValueError: says what the value is instead of a text: null, an object, ….
    """
    if value is None:
        raise ValueError("null")
    if isinstance(value, str):
        check_text(value)
        return value
    if isinstance(value, float) and math.isnan(value):
        raise ValueError("NaN, which is how a missing value is often stored")
    if isinstance(value, float) and math.isinf(value):
        raise ValueError("infinite, which is a fault of the data rather than a text")
    if isinstance(value, bool | int | float):
        return str(value)
    kind = {"dict": "an object", "list": "a list"}.get(type(value).__name__, type(value).__name__)
    raise ValueError(f"{kind}, expected text or a number")


def references_of(value: Any, *, optional: bool = False) -> list[str]:
    """A reference, or a list of several, as texts.

    Among several, null (or NaN) is no further reference and is left out, so that nothing may be
    left of a list of several.

    Args:
        value: what is in the column.
        optional: other columns hold references too, so that this one may be null or empty.

    Raises:
        ValueError: null or an empty list where there is no other, a list of one null, or anything
            but texts and numbers.
    """
    if not isinstance(value, list):
        return [] if optional and is_missing(value) else [text_of(value)]
    if not value and not optional:
        raise ValueError("an empty list")
    optional = optional or len(value) > 1
    texts = []
    for place, element in enumerate(value):
        if optional and is_missing(element):
            continue
        try:
            texts.append(text_of(element))
        except ValueError as error:
            raise ValueError(f"a list whose element {place} is {error}") from None
    return texts


def is_missing(value: Any) -> bool:
    """Whether ``value`` is null, or NaN, which stands for it where a type has no null."""
    return value is None or (isinstance(value, float) and math.isnan(value))
