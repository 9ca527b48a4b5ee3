"""Tokenizers for ROUGE: its own, two for any script, sacreBLEU's, and the person's.

    default      runs of a–z and 0–9 in lower case, as in ``rouge_score``
    unicode      words by UAX #29 with a letter or digit, NFKC and case-folded
    character    characters (grapheme clusters) with a letter or digit, likewise
    13a, zh, …   sacreBLEU's, of the text in lower case: ROUGE knows no case
    a.b:name     the person's function, text → list of tokens, of the text as it is

The first three run in ``rouge_score_rs`` itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, get_args

from pipeline.errors import ConfigError, did_you_mean
from pipeline.score.dotted import failed, import_dotted
from pipeline.score.words import SacrebleuTokenizer, require_tokenizer, sacrebleu_tokenizer

DEFAULT = "default"
NATIVE = ("unicode", "character")  # of rouge_score_rs alone
_SACREBLEU = get_args(SacrebleuTokenizer)
_WHERE = "score.metrics.rouge.tokenizer"


def check_tokenizer(name: str) -> None:
    """Check that ``name`` is a tokenizer that can be used here.

    Raises:
        ConfigError: an unknown name, one whose package is missing, or a path that is no function.
    """
    if ":" in name:
        _imported(name)
    elif name in _SACREBLEU:
        require_tokenizer(name, _WHERE)
    elif name not in (DEFAULT, *NATIVE):
        known = (DEFAULT, *NATIVE, *_SACREBLEU)
        raise ConfigError(
            f"{_WHERE}: no tokenizer '{name}'{did_you_mean(name, known)}; a function of your own "
            "is package.module:function"
        )


class Tokenizer:
    """A tokenizer as ``RougeScorer`` takes it, that runs in Python."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._function = _imported(name) if ":" in name else _sacrebleu(name)

    def tokenize(self, text: str) -> list[str]:
        """The tokens of ``text``.

        Raises:
            ConfigError: the person's function failed, or returned something else than a list of
                strings.
        """
        try:
            tokens = self._function(text)
        except (Exception, SystemExit) as error:  # the person's code may raise anything
            raise failed(f"{_WHERE}: '{self._name}'", error) from error
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise ConfigError(
                f"{_WHERE}: '{self._name}' returned {type(tokens).__name__} for {text[:40]!r}; "
                "expected a list of strings"
            )
        return tokens


@lru_cache(maxsize=8)
def load_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of that name, made once per process; not for the native ones."""
    return Tokenizer(name)


def _imported(path: str) -> Callable[[str], Any]:
    function = import_dotted(path, _WHERE)
    if not callable(function):
        raise ConfigError(f"{_WHERE}: '{path}' is {function!r}, not a function")
    return function  # type: ignore[no-any-return]


def _sacrebleu(name: str) -> Callable[[str], list[str]]:
    tokenizer = sacrebleu_tokenizer(name)
    return lambda text: tokenizer(text.rstrip().lower()).split()
