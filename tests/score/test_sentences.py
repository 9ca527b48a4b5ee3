from __future__ import annotations

import pytest
import regex
from hypothesis import given, settings

from pipeline.score.sentences import FREE, SPACED, split_sentences
from tests.score.strategies import any_text


@pytest.mark.parametrize(
    "sentences",
    [
        ["A cat sat.", "A dog ran!", "Why?", "Because…", "Well."],
        ["Dr. Smith met J. Doe of the U.S. Army at 3.5 p.m. on Jan. 5.", "He left."],
        ["See fig. 3 and No. 5, e.g. at example.org.", "He said no.", "Then he left."],
        ["“Really?” he asked.", "“Yes.”", "(It was.)", "[So!]", "Done"],
        ["Wait... what?", "Well...", "Then nothing."],
        ["第一句。", "第二句！", "真的？！", "“是的。”", "完"],
        ["यह एक वाक्य है।", "दूसरा वाक्य॥", "तीसरा?"],
        ["هل هذا سؤال؟", "نعم.", "یہ جملہ ہے۔", "ختم"],
        ["Это я.", "Он ушёл.", "И т.д. и т.п."],
        ["ይህ ነው።", "ሌላ፧", "မြန်မာ။", "ខ្មែរ។", "Հայերեն։"],
        ["¿Qué?", "¡No!", "Sí."],
    ],
)
def test_sentences(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences


def test_no_space_is_needed_where_the_script_has_none() -> None:
    assert split_sentences("一。二！三？四") == ["一。", "二！", "三？", "四"]


def test_lines_are_sentences_too() -> None:
    assert split_sentences("one\ntwo. three\r\n\n four\u2028Five. Six") == [
        *("one", "two. three", "four", "Five.", "Six")
    ]
    assert split_sentences(" \n ") == []


def test_what_is_missed_stays_one_sentence() -> None:
    assert split_sentences("He works at Foo Inc. He is rich.") == [
        "He works at Foo Inc. He is rich."
    ]


def test_the_marks_end_sentences_in_unicode() -> None:
    # U+2026 is no Sentence_Terminal, and ends one when a capital follows.
    assert [c for c in FREE + SPACED if not regex.match(r"\p{Sentence_Terminal}", c)] == ["…"]


@settings(deadline=None, max_examples=200)
@given(text=any_text)
def test_nothing_but_white_space_is_lost(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())
