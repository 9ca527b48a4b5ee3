from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.score import pair_ngrams
from pipeline.score.pair_ngrams import pair_matches
from pipeline.score.words import split_words
from tests.score.strategies import any_text

Pairs = list[tuple[str, str]]


def _check(pairs: Pairs, max_order: int, tokenizer: str) -> None:
    texts = [prediction for prediction, _ in pairs] + [reference for _, reference in pairs]
    words = split_words(texts, tokenizer)
    values, offsets = words.tokens.to_pylist(), np.cumsum([0, *words.counts])
    found = pair_matches(words, len(pairs), max_order)
    for row in range(len(pairs)):
        sides = [values[offsets[text] : offsets[text + 1]] for text in (row, row + len(pairs))]
        for order in range(1, max_order + 1):
            predicted, referenced = (
                Counter(zip(*(side[n:] for n in range(order)), strict=False)) for side in sides
            )
            assert found[row, order - 1] == (predicted & referenced).total()


# 63 bits are enough for few tokens; with 12 the others are counted, and with no waste all are.
@pytest.mark.parametrize(("bits", "waste"), [(63, 10**6), (12, 10**6), (63, 0)])
@settings(deadline=None, max_examples=60)
@given(
    pairs=st.lists(st.tuples(any_text, any_text), max_size=6),
    max_order=st.integers(0, 6),
    tokenizer=st.sampled_from(["char", "none"]),
)
def test_matches_equal_a_counter(
    bits: int, waste: int, pairs: Pairs, max_order: int, tokenizer: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_ngrams, "_BITS", bits)
        patch.setattr(pair_ngrams, "WASTE", waste)
        _check(pairs, max_order, tokenizer)


def test_the_ends_of_texts_match_nothing() -> None:
    _check([("a b", "a b"), ("b", "a b"), ("a b", "b"), ("", "a"), ("a", "")], 4, "none")


def test_numbers_of_63_bits() -> None:
    # 7 bits for each of 9 characters, and the side: one bit too many; with 8 it fits.
    text = "".join(map(chr, range(0x400, 0x400 + 100)))
    for order in (8, 9):
        _check([(text, text[:50] + text), (text[::-1], text)], order, "char")


def test_a_long_row_among_short_ones() -> None:
    _check([("a b", "b a")] * 50 + [("a b c " * 500, "b c a " * 500)], 3, "none")
