from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from pipeline.score.metrics import chrf
from pipeline.score.metrics.chrf import Chrf, ChrfOptions
from tests.score.metrics.oracles import NASTY, Rows, split_rows, streams
from tests.score.strategies import rows

options = st.fixed_dictionaries(
    {
        "char_order": st.sampled_from([6, 6, 1, 3]),
        "word_order": st.sampled_from([0, 2, 2, 4]),
        "beta": st.sampled_from([2, 2, 1, 3]),
        "lowercase": st.booleans(),
        "whitespace": st.booleans(),
        "eps_smoothing": st.booleans(),
    }
)


def _check_against_sacrebleu(examples: Rows, **chosen: object) -> None:
    predictions, references = split_rows(examples)
    oracle, metric = CHRF(**chosen), Chrf(ChrfOptions(**chosen))
    expected = oracle._extract_corpus_statistics(predictions, streams(references))
    statistics = metric.statistics(predictions, references)
    assert statistics.tolist() == expected

    totals = statistics.sum(axis=0).astype(int).tolist()
    corpus = oracle.corpus_score(predictions, streams(references)).score
    assert metric.scores(totals)["chrf"] == (corpus if any(totals[1::3]) else None)
    examples_scores = metric.example_scores(statistics)["chrf"].tolist()
    for row, score in enumerate(examples_scores):
        if math.isnan(score):
            assert not any(statistics[row, 1::3])
        else:
            assert score == oracle.sentence_score(predictions[row], references[row]).score


@settings(deadline=None, max_examples=250)
@given(examples=rows().filter(bool), chosen=options)
def test_statistics_and_scores_equal_sacrebleu(examples: Rows, chosen: dict[str, object]) -> None:
    _check_against_sacrebleu(examples, **chosen)


@pytest.mark.parametrize("whitespace", [False, True])
@pytest.mark.parametrize("lowercase", [False, True])
def test_traps_equal_sacrebleu(whitespace: bool, lowercase: bool) -> None:
    examples = [(text, [text, NASTY[-1 - row]]) for row, text in enumerate(NASTY)]
    examples += [(NASTY[-1 - row], [text]) for row, text in enumerate(NASTY)]
    _check_against_sacrebleu(examples, word_order=2, whitespace=whitespace, lowercase=lowercase)


def test_every_character_of_unicode_is_split_as_by_sacrebleu() -> None:
    # Each alone, at both ends of words and inside, where white space and punctuation matter.
    text = [chr(point) for point in range(0x3100)]
    words = [f"{c}ab{c} {c} x{c}y {c}{c} a{c} {c}b" for c in text]
    lines = [" ".join(words[start : start + 64]) for start in range(0, len(words), 64)]
    lines += ["".join(map(chr, range(start, start + 512))) for start in range(0, 0x110000, 512)]
    _check_against_sacrebleu([(line, [line]) for line in lines], char_order=1, word_order=2)


def test_an_order_that_the_reference_lacks_does_not_count() -> None:
    metric = Chrf(ChrfOptions(char_order=3))
    # Prediction, reference, match: 3 bigrams and 2 trigrams of "abcd" count 0 against "a".
    assert metric.statistics(["abcd"], [["a"]]).tolist() == [[4, 1, 1, 0, 0, 0, 0, 0, 0]]


def test_statistics_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    predictions = [f"the {row % 3} cat sat, {row}." for row in range(50)]
    references = [[f"the {row % 2} cat sat.", "a cat"][: 1 + row % 2] for row in range(50)]
    metric = Chrf(ChrfOptions(word_order=2))
    whole = metric.statistics(predictions, references)
    monkeypatch.setattr(chrf, "BLOCK_CHARACTERS", 100)
    assert np.array_equal(metric.statistics(predictions, references), whole)


def test_golden_numbers() -> None:
    # Oracle: sacrebleu 2.6.0, the example of its README: chrF2 = 59.73 with two references.
    predictions = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
    references = [
        ["The dog bit the man.", "The dog had bit the man."],
        ["It was not unexpected.", "No one was surprised."],
        ["The man bit him first.", "The man had bitten the dog."],
    ]
    totals = Chrf().statistics(predictions, references).sum(axis=0).tolist()
    assert Chrf().scores(totals)["chrf"] == pytest.approx(59.73, abs=0.005)


@pytest.mark.parametrize("prediction", ["", "abc"])
def test_undefined_without_a_character_in_the_reference(prediction: str) -> None:
    metric = Chrf()
    statistics = metric.statistics([prediction, ""], [["", " \n"], ["abc"]])
    assert np.isnan(metric.example_scores(statistics)["chrf"][0])
    assert metric.example_scores(statistics)["chrf"][1] == 0


@pytest.mark.parametrize("chosen", [{}, {"word_order": 2, "lowercase": True, "whitespace": True}])
def test_signature_is_sacrebleus(chosen: dict[str, object]) -> None:
    oracle = CHRF(**chosen)
    oracle.corpus_score(["a"], [["a"], ["b"]])
    assert Chrf(ChrfOptions(**chosen)).signature(2) == str(oracle.get_signature())
    oracle.corpus_score(["a", "b"], [["a", "b"], ["b", None]])
    assert Chrf(ChrfOptions(**chosen)).signature() == str(oracle.get_signature())
    assert "|beta:3|" in Chrf(ChrfOptions(beta=3)).signature()
