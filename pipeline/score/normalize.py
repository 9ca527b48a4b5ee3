"""``score.normalize``: what is done to every text before any metric sees it.

Nothing by default: scores are of the texts as they are. The steps stand in every signature, so
that a score of normalised texts is never taken for one of the texts themselves.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Literal
from urllib.parse import quote

from pipeline.config import Config
from pipeline.errors import ConfigError


class RegexStep(Config, frozen=True):
    """Replace what matches, as ``re.sub`` does.

    Attributes:
        regex: pattern and replacement; the replacement may hold ``\\1`` and ``\\g<name>``.
    """

    regex: tuple[str, str]


Step = Literal["strip", "lowercase", "nfkc"] | RegexStep


class Normalizer:
    """The steps in their order; pickles.

    Attributes:
        signature: such as ``strip+nfkc``; empty without steps.

    Raises:
        ConfigError: a regular expression that is none, or a replacement that does not fit it.
    """

    def __init__(self, steps: Sequence[Step] = ()) -> None:
        self._steps = tuple(steps)
        self.signature = "+".join(map(_sign, steps))
        self("")  # a bad pattern or replacement shows here

    def __call__(self, text: str) -> str:
        for step in self._steps:
            text = _FUNCTIONS[step](text) if isinstance(step, str) else _substitute(step, text)
        return text

    def all(self, texts: list[str]) -> list[str]:
        """Each of ``texts``; the list itself when there is nothing to do."""
        return list(map(self, texts)) if self._steps else texts


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


_FUNCTIONS: dict[str, Callable[[str], str]] = {
    "strip": str.strip,
    "lowercase": str.lower,
    "nfkc": _nfkc,
}


def _substitute(step: RegexStep, text: str) -> str:
    pattern, replacement = step.regex
    try:
        return re.sub(pattern, replacement, text)
    except (re.error, IndexError) as error:
        raise ConfigError(
            f"score.normalize: the regular expression {pattern!r} with the replacement "
            f"{replacement!r} cannot be used: {error}"
        ) from None


def _sign(step: Step) -> str:
    if isinstance(step, str):
        return step
    # | and : separate the parts of a signature, + and , those of this one.
    pattern, replacement = (quote(part, safe=" ^$.*?()[]{}\\-") for part in step.regex)
    return f"regex({pattern},{replacement})"
