from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.tokenize import tokenize
from rouge_score_rs.tokenizers import CharacterTokenizer, UnicodeTokenizer

from pipeline.score.letters import count_letters, is_unspaced
from tests.score.strategies import any_text


def _drops(letter: str) -> bool:
    return not any(map(str.isascii, letter.lower()))


@settings(deadline=None, max_examples=200)
@given(texts=st.lists(any_text, max_size=6))
def test_counts_equal_a_loop(texts: list[str]) -> None:
    letters, dropped, unspaced = count_letters(texts, _drops)
    for row, text in enumerate(texts):
        alphabetic = [character for character in text if character.isalpha()]
        lost = [letter for letter in alphabetic if not tokenize(letter, None)]
        assert (letters[row], dropped[row]) == (len(alphabetic), len(lost))
        assert unspaced[row] == sum(map(is_unspaced, lost))


def test_no_letter_is_lost_by_the_tokenizers_for_any_script() -> None:
    letters = [chr(point) for point in range(0x30000) if chr(point).isalpha()]
    for tokenizer in (UnicodeTokenizer(), CharacterTokenizer()):
        lost = [letter for letter in letters if not tokenizer.tokenize(letter)]
        # Hangul fillers, which show nothing, and the sound marks of narrow kana, which combine.
        assert set(lost) <= set("\u115f\u1160\u3164\uffa0\uff9e\uff9f")
