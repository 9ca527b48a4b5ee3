"""sacreBLEU's word tokenizers over all texts at once.

sacreBLEU tokenizes with a few regular expressions per sentence, and each of them only puts spaces
around some characters. Which characters depends on their class and their neighbours, so here the
texts become one array of code points, the code points one array of classes (a table look-up), and
each expression a few array operations that mark where one token ends and the next begins. No
spaces are written and no text is rebuilt; the tokens are the same (the tests compare them with
sacreBLEU's over all of Unicode).

That holds for ``13a`` (mteval-v13a), ``zh``, ``intl`` (mteval-v14), ``char`` and ``none``.
sacreBLEU's other tokenizers (MeCab, SentencePiece) run as they are; what they return is split at
spaces, like ``none``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.errors import ConfigError
from pipeline.score.characters import ALONE, DASH, DIGIT, POINT, SPACE, TOKENIZERS, rules

# All of sacreBLEU's; those of the second line need packages or models of their own.
SacrebleuTokenizer = Literal[
    "13a", "none", "intl", "char", "zh",
    "ja-mecab", "ko-mecab", "spm", "flores101", "flores200", "spBLEU-1K",
]  # fmt: skip


class Words(NamedTuple):
    """The tokens of some texts, one text after the other.

    Attributes:
        tokens: (tokens,) an Arrow array; equal tokens are equal values.
        counts: (texts,) tokens of each text.
    """

    tokens: pa.Array
    counts: NDArray[np.int64]


def split_words(texts: Sequence[str], tokenizer: str) -> Words:
    """Tokenize ``texts`` as sacreBLEU's tokenizer of that name does."""
    if tokenizer not in TOKENIZERS:
        return _split(list(map(sacrebleu_tokenizer(tokenizer), map(str.rstrip, texts))), "none")
    return _split(list(map(rules(tokenizer).prepare, map(str.rstrip, texts))), tokenizer)


def _split(texts: list[str], tokenizer: str) -> Words:
    classes, _, edge = rules(tokenizer)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    # One space before, between and after the texts; edges holds their positions.
    edges = np.concatenate(([0], np.cumsum(lengths + 1)))
    padded = " " + "".join(text + " " for text in texts)
    points = np.frombuffer(padded.encode("utf-32-le", "surrogatepass"), "<u4")
    kinds = classes[points]
    kinds[edges] = edge
    space = (kinds & SPACE) != 0
    starts = ~space
    starts[1:] &= space[:-1] | _cuts(kinds)[1:]
    ends = np.searchsorted(np.flatnonzero(starts), edges)  # how many tokens start before each
    letters = points[~space]
    offsets = np.append(np.flatnonzero(starts[~space]), len(letters)) * 4
    tokens = pa.Array.from_buffers(
        pa.large_binary(),
        len(offsets) - 1,
        [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(letters)],
    )
    return Words(tokens, np.diff(ends))


def _cuts(kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether a token ends before each character (if it is not a space anyway)."""
    cuts = np.zeros(len(kinds) + 1, np.bool_)
    alone = (kinds & ALONE) != 0
    cuts[:-1] |= alone
    cuts[1:] |= alone
    _cut_points(kinds, cuts)
    dashes = np.flatnonzero(kinds & DASH)
    # The edge of a text may be marked DIGIT, and is no digit here; it is a SPACE too.
    dashes = dashes[(kinds[dashes - 1] & (DIGIT | SPACE)) == DIGIT]
    cuts[dashes] = True
    cuts[dashes + 1] = True
    return cuts[:-1]


def _cut_points(kinds: NDArray[np.uint8], cuts: NDArray[np.bool_]) -> None:
    """First ``([^0-9])([.,])`` → ``\\1 \\2 ``, then ``([.,])([^0-9])`` → `` \\1 \\2``.

    A match takes both characters, so in a run of points every other one is the second of a match
    of the first rule: those at even places when a non-digit stands before the run (it is the first
    of the first match), those at odd places otherwise. After that rule no two points touch, and
    the second rule splits each point that a non-digit follows, a space included.
    """
    points = np.flatnonzero(kinds & POINT)
    if len(points) == 0:
        return
    opens = np.diff(points, prepend=-2) != 1  # the first of its run
    run_starts = np.flatnonzero(opens)
    run = np.cumsum(opens) - 1
    place = np.arange(len(points)) - run_starts[run]
    after_digit = (kinds[points[run_starts] - 1] & DIGIT) != 0
    first_rule = (place % 2 == 1) == after_digit[run]
    closes = np.append(opens[1:], True)
    second_rule = ~closes | ((kinds[points + 1] & DIGIT) == 0)
    split = points[first_rule | second_rule]
    cuts[split] = True
    cuts[split + 1] = True


def require_tokenizer(name: str, where: str) -> None:
    """Check that the tokenizer can be made.

    Args:
        name: a ``SacrebleuTokenizer``.
        where: the key of params.yaml, for messages.

    Raises:
        ConfigError: it needs what is not installed.
    """
    if name in TOKENIZERS:
        return
    try:
        sacrebleu_tokenizer(name)
    except Exception as error:  # sacreBLEU lets through whatever the package or download raises
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"{where}: sacreBLEU cannot make the tokenizer '{name}': {reason}"
        ) from error


@lru_cache(maxsize=4)
def sacrebleu_tokenizer(name: str) -> Callable[[str], str]:
    """sacreBLEU's own tokenizer; whatever it raises when it cannot be made."""
    from sacrebleu.metrics.bleu import BLEU

    tokenizer: Callable[[str], str] = BLEU(tokenize=name).tokenizer
    return tokenizer
