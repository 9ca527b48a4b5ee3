"""How many letters a tokenizer throws away.

ROUGE's own tokenizer knows a–z and 0–9 and gives 0 for other scripts, which is the most repeated
complaint about it. So the letters of the references are counted, and those that no token holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

# Of scripts that put no spaces between words: first and last code point of their letters.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x30FF),  # Kana
    (0x3400, 0x9FFF),  # Chinese characters
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def count_letters(
    texts: Sequence[str], dropped: Callable[[str], bool]
) -> tuple[Integers, Integers, Integers]:
    """Letters (as ``str.isalpha`` has them) of each text, and which of them are dropped.

    Args:
        texts: the texts.
        dropped: whether the tokenizer drops a letter; asked once for each that occurs and is not
            ASCII.

    Returns:
        (texts,) each: letters; dropped letters; dropped letters of scripts without spaces.
    """
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    joined = "".join(texts)
    if joined.isascii():
        points = np.frombuffer(joined.encode(), np.uint8)
        letters = _sums(((points | 0x20) - ord("a")) < 26, ends)
        return letters, np.zeros_like(letters), np.zeros_like(letters)
    points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4")
    alphabet = sorted(set(joined))
    table = np.zeros((3, ord(alphabet[-1]) + 1), np.bool_)
    for character in alphabet:
        if character.isalpha():
            lost = not character.isascii() and dropped(character)
            table[:, ord(character)] = True, lost, lost and is_unspaced(character)
    letters, lost_letters, unspaced = (_sums(row[points], ends) for row in table)
    return letters, lost_letters, unspaced


def is_unspaced(letter: str) -> bool:
    """Whether a letter belongs to a script without spaces between words."""
    return any(first <= ord(letter) <= last for first, last in _UNSPACED)


def _sums(marks: NDArray[np.bool_], ends: Integers) -> Integers:
    """How many marks each text has; ``ends`` are the positions after the texts."""
    before = np.concatenate(([0], np.cumsum(marks)))
    sums: Integers = np.diff(before[ends], prepend=0)
    return sums
