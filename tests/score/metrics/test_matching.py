"""exact_match, token_f1, edit_similarity."""

from __future__ import annotations

import re
import string
from collections import Counter
from difflib import SequenceMatcher

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz import fuzz

from pipeline.score.metrics.edit_similarity import EditSimilarity, EditSimilarityOptions
from pipeline.score.metrics.exact_match import ExactMatch, ExactMatchOptions
from pipeline.score.metrics.token_f1 import TokenF1, TokenF1Options
from tests.score.metrics.oracles import Rows, split_rows
from tests.score.strategies import any_text, rows


# The official script for SQuAD 2.0 (rajpurkar.github.io/SQuAD-explorer), as it stands there.
def normalize_answer(s: str) -> str:
    def remove_articles(text: str) -> str:
        regex = re.compile(r"\b(a|an|the)\b", re.UNICODE)
        return re.sub(regex, " ", text)

    def white_space_fix(text: str) -> str:
        return " ".join(text.split())

    def remove_punc(text: str) -> str:
        exclude = set(string.punctuation)
        return "".join(ch for ch in text if ch not in exclude)

    def lower(text: str) -> str:
        return text.lower()

    return white_space_fix(remove_articles(remove_punc(lower(s))))


def compute_f1(gold_toks: list[str], pred_toks: list[str]) -> float:
    common = Counter(gold_toks) & Counter(pred_toks)
    num_same = sum(common.values())
    if len(gold_toks) == 0 or len(pred_toks) == 0:
        return int(gold_toks == pred_toks)
    if num_same == 0:
        return 0
    precision = 1.0 * num_same / len(pred_toks)
    recall = 1.0 * num_same / len(gold_toks)
    return (2 * precision * recall) / (precision + recall)


answers = st.lists(
    st.sampled_from(
        ["The", "a", "an", "cat's", "hat!", "U.S.", "(x)", "1,5", "é", "\u3000", "the-"]
    )
).map(" ".join)


@settings(deadline=None, max_examples=200)
@given(examples=rows(st.one_of(answers, any_text)))
def test_token_f1_and_exact_match_equal_the_squad_script(examples: Rows) -> None:
    predictions, references = split_rows(examples)
    f1 = TokenF1().statistics(predictions, references)
    exact = ExactMatch(ExactMatchOptions(normalize="squad")).statistics(predictions, references)
    for row, (prediction, texts) in enumerate(examples):
        words = [normalize_answer(text).split() for text in texts]
        best = max(compute_f1(gold, normalize_answer(prediction).split()) for gold in words)
        assert f1[row, 3] == best
        same = [normalize_answer(text) == normalize_answer(prediction) for text in texts]
        assert exact[row].tolist() == [1, max(same)]


@settings(deadline=None, max_examples=100)
@given(examples=rows())
def test_without_normalisation(examples: Rows) -> None:
    predictions, references = split_rows(examples)
    f1 = TokenF1(TokenF1Options(normalize="none")).statistics(predictions, references)
    exact = ExactMatch().statistics(predictions, references)
    for row, (prediction, texts) in enumerate(examples):
        best = max(compute_f1(text.split(), prediction.split()) for text in texts)
        assert f1[row, 3] == best
        assert exact[row, 1] == (prediction in texts)


def test_golden_numbers() -> None:
    # By hand: "cat sat on mat" against "cat sat": precision 2/4, recall 2/2; and no words at all.
    statistics = TokenF1().statistics(
        ["The cat sat on the mat.", "the", "x", ""], [["a cat sat", "dog"], ["!"], ["y"], ["z"]]
    )
    assert statistics.tolist() == [[1, 0.5, 1, 2 / 3], [1, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0]]
    scores = TokenF1().scores([4, 1.5, 2, 5 / 3])
    assert scores == {"token_f1": 5 / 12, "token_f1.precision": 0.375, "token_f1.recall": 0.5}
    assert ExactMatch().scores([4, 1]) == {"exact_match": 0.25}


def _levenshtein(a: str, b: str) -> int:
    """Wagner & Fischer 1974."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        previous, row[0] = row[:], i + 1
        for j, y in enumerate(b):
            row[j + 1] = min(previous[j] + (x != y), previous[j + 1] + 1, row[j] + 1)
    return row[-1]


@settings(deadline=None, max_examples=150)
@given(examples=rows())
def test_edit_similarity_equals_its_definition_and_rapidfuzz(examples: Rows) -> None:
    predictions, references = split_rows(examples)
    found = EditSimilarity().statistics(predictions, references)
    indel = EditSimilarity(EditSimilarityOptions(distance="indel")).statistics(
        predictions, references
    )
    for row, (prediction, texts) in enumerate(examples):
        best = max(
            1 - _levenshtein(prediction, text) / max(len(prediction), len(text), 1)
            for text in texts
        )
        assert found[row].tolist() == [1, pytest.approx(best, abs=1e-15)]
        assert indel[row, 1] == pytest.approx(
            max(fuzz.ratio(prediction, text) for text in texts) / 100, abs=1e-15
        )


def test_edit_similarity_golden_numbers() -> None:
    # The textbook: kitten → sitting takes 3 edits; difflib's ratio for the other distance.
    assert EditSimilarity().statistics(["kitten"], [["sitting"]]).tolist() == [[1, 1 - 3 / 7]]
    ratio = SequenceMatcher(None, "abcd", "bcde").ratio()
    indel = EditSimilarity(EditSimilarityOptions(distance="indel"))
    assert indel.statistics(["abcd", ""], [["bcde"], [""]]).tolist() == [[1, ratio], [1, 1]]


def test_signatures() -> None:
    assert ExactMatch().signature(1) == "nrefs:1|match:none|version:1"
    assert TokenF1().signature() == "nrefs:var|tok:squad|version:1"
    assert (
        EditSimilarity().signature(2).startswith("nrefs:2|distance:levenshtein|version:rapidfuzz-")
    )
