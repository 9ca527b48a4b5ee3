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
    if isinstance(value, bool | int | float):
        return str(value)
    kind = {"dict": "an object", "list": "a list"}.get(type(value).__name__, type(value).__name__)
    raise ValueError(f"{kind}, expected text or a number")


def references_of(value: Any) -> list[str]:
    """A reference, or a list of several, as a list of at least one text.

    Raises:
        ValueError: null, an empty list, or a list that holds anything but texts and numbers.
    """
    if not isinstance(value, list):
        return [text_of(value)]
    if not value:
        raise ValueError("an empty list")
    texts = []
    for place, element in enumerate(value):
        try:
            texts.append(text_of(element))
        except ValueError as error:
            raise ValueError(f"a list whose element {place} is {error}") from None
    return texts
