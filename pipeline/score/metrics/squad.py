"""How the SQuAD evaluation script compares answers (Rajpurkar et al. 2016, 2018).

In lower case, without ASCII punctuation, without the English articles, words separated by single
spaces; in this order.
"""

from __future__ import annotations

import re
import string

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """``The cat's  hat!`` → ``cats hat``."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())
