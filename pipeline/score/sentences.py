"""Splitting text into sentences by rules, for any script; nothing is downloaded.

A sentence ends

* at a line break;
* after ``。 ！ ？ ।`` and the like, whether or not a space follows;
* after ``. ! ? …`` where white space follows and the next letter is not lower case; but not after
  the dot of a single letter (``J. Smith``, ``U.S. Army``), of a title or other abbreviation in
  ``ABBREVIATIONS``, or of ``No.`` before a digit.

Runs of such marks, and the quotes and brackets that close after them, belong to the sentence. A dot
inside a word or number (``3.5``, ``example.org``) has no space after it and ends nothing. What the
rules miss (``… Inc. Then …``) stays one sentence.
"""

from __future__ import annotations

import re

# Ends of sentences (Unicode's Sentence_Terminal) that need no space after them.
FREE = (
    "。｡．！？"  # Chinese, Japanese
    "।॥"  # Devanagari and its neighbours
    "؟۔؞"  # Arabic, Urdu
    "܀܁܂"  # Syriac
    "።፧፨"  # Ethiopic
    "။"  # Burmese
    "។៕"  # Khmer
    "᠃᠉"  # Mongolian
    "։"  # Armenian; its ՜ and ՞ stand inside words
    "߹"  # N'Ko
    "꘎꘏꛳꛷"  # Vai, Bamum
    "‼‽⁇⁈⁉"
)
SPACED = ".!?…"
_ENGLISH = """
mr mrs ms mx dr prof st sr jr rev hon gen col capt lt sgt gov sen rep pres vs etc al cf fig figs eq
eqs vol vols pp ed eds approx dept est inc ltd corp jan feb apr jun jul aug sep sept oct nov dec
"""
_OTHERS = "bzw ca evtl ggf str usw vgl zzgl bspw mme mlle sra srta dra"  # German, French, Spanish
ABBREVIATIONS = frozenset([*_ENGLISH.split(), *_OTHERS.split()])
_NUMBERING = ("no", "nos", "nr")  # words, too, unless a digit follows

_CLOSING = "\"'”’»›）)\\]}」』】〉》"
_END = re.compile(
    rf"[{FREE}]+[{FREE}{SPACED}]*[{_CLOSING}]*|[{SPACED}]+[{SPACED}{FREE}]*[{_CLOSING}]*(?=\s)"
)
_OPENING = "\"'“‘«‹（([{「『【〈《¿¡"


def split_sentences(text: str) -> list[str]:
    """The sentences of ``text`` without the white space around them; none is empty."""
    sentences = [sentence for line in text.splitlines() for sentence in _split_line(line)]
    return [sentence for sentence in map(str.strip, sentences) if sentence]


def _split_line(line: str) -> list[str]:
    sentences, start = [], 0
    for match in _END.finditer(line):
        if line[match.start()] in FREE or _ends(line, match.start(), match.end()):
            sentences.append(line[start : match.end()])
            start = match.end()
    return [*sentences, line[start:]]


def _ends(line: str, mark: int, after: int) -> bool:
    """Whether the mark at ``mark``, with white space from ``after`` on, ends a sentence."""
    following = line[after:].lstrip().lstrip(_OPENING)
    if following[:1].islower():
        return False
    if line[mark:after].rstrip(_CLOSING) != ".":
        return True
    word = _word_before(line, mark)
    if word.lower() in _NUMBERING:
        return not following[:1].isdigit()
    return not _is_initial(word) and word.lower() not in ABBREVIATIONS


def _word_before(line: str, stop: int) -> str:
    start = stop
    while start > 0 and line[start - 1].isalpha():
        start -= 1
    return line[start:stop]


def _is_initial(word: str) -> bool:
    # A small letter of another script may well be a word: Это я.
    return len(word) == 1 and (word.isascii() or word.isupper())
