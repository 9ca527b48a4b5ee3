"""Classes of characters: what sacreBLEU's tokenizers look at.

    class   13a and zh                intl             effect
    ALONE   other ASCII punctuation   \\p{S}            a token by itself
            (zh: and Chinese)
    POINT   . and ,                   \\p{P}            a token, unless between two DIGITs
    DIGIT   0–9                       \\p{N}            see POINT and DASH
    DASH    -                         –                a token after a DIGIT
    SPACE   str.isspace()             str.isspace()    between tokens

``char`` makes everything ALONE, ``none`` nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SPACE, DIGIT, POINT, DASH, ALONE = 1, 2, 4, 8, 16
TOKENIZERS = ("13a", "none", "intl", "char", "zh")

_UNICODE = 0x110000
_PAST_LAST_SPACE = 0x3001  # U+3000 is the last white space


class Rules(NamedTuple):
    """How one tokenizer works.

    Attributes:
        classes: (0x110000,) uint8, the classes of each code point.
        prepare: what is done to a text first (its right end is stripped already).
        edge: the classes of what stands before and after a text: 13a pads it with spaces; with
            ``intl`` and ``zh`` nothing stands there, which acts on a POINT as a DIGIT does.
    """

    classes: NDArray[np.uint8]
    prepare: Callable[[str], str]
    edge: int


@lru_cache(maxsize=len(TOKENIZERS))
def rules(tokenizer: str) -> Rules:
    """The rules of a tokenizer out of ``TOKENIZERS``."""
    classes = np.zeros(_UNICODE, np.uint8)
    spaces = [point for point in range(_PAST_LAST_SPACE) if chr(point).isspace()]
    prepare: Callable[[str], str] = str
    edge = SPACE
    if tokenizer == "13a":
        _classify_western(classes)
        prepare = _prepare_13a
    elif tokenizer == "zh":
        _classify_western(classes)
        _classify_chinese(classes)
        prepare, edge = str.strip, SPACE | DIGIT
    elif tokenizer == "intl":
        _classify_unicode(classes)
        edge = SPACE | DIGIT
    elif tokenizer == "char":
        classes[:] = ALONE
    classes[spaces] = SPACE
    return Rules(classes, prepare, edge)


def _prepare_13a(text: str) -> str:
    text = text.replace("<skipped>", "").replace("-\n", "")
    if "&" in text:
        text = text.replace("&quot;", '"').replace("&amp;", "&")
        text = text.replace("&lt;", "<").replace("&gt;", ">")
    return text


def _classify_western(classes: NDArray[np.uint8]) -> None:
    classes[ord("0") : ord("9") + 1] = DIGIT
    classes[[ord("."), ord(",")]] = POINT
    classes[ord("-")] = DASH
    # All that is printable in ASCII but letters, digits and ' , - .
    for first, last in ("!&", "(+", "//", ":@", "[`", "{~"):
        classes[ord(first) : ord(last) + 1] = ALONE


def _classify_chinese(classes: NDArray[np.uint8]) -> None:
    # Not \p{Han}: the ranges are sacreBLEU's own, and compared as strings. Two of them begin and
    # end with two characters (U+2000 and a 0, where U+20000 was meant), which sort after the first.
    from sacrebleu.tokenizers.tokenizer_zh import _UCODE_RANGES

    for first, last in _UCODE_RANGES:
        classes[ord(first[0]) + len(first) - 1 : ord(last[0]) + 1] = ALONE


def _classify_unicode(classes: NDArray[np.uint8]) -> None:
    # What sacreBLEU uses, so that the versions of Unicode agree; ships no types.
    import regex  # type: ignore[import-untyped]

    everything = "".join(map(chr, range(_UNICODE)))
    for name, kind in (("P", POINT), ("N", DIGIT), ("S", ALONE)):
        for match in regex.finditer(rf"\p{{{name}}}+", everything):
            classes[match.start() : match.end()] = kind
