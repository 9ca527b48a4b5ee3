from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.ter import TER

from pipeline.score.exact import ExactSum
from pipeline.score.metrics.ter import Ter, TerOptions
from tests.score.metrics.oracles import NASTY, Rows, split_rows, streams
from tests.score.strategies import rows

NAMES = ("normalized", "no_punct", "asian_support", "case_sensitive")
options = st.fixed_dictionaries({name: st.booleans() for name in NAMES})


def _check_against_sacrebleu(examples: Rows, **chosen: bool) -> None:
    predictions, references = split_rows(examples)
    oracle, metric = TER(**chosen), Ter(TerOptions(**chosen))
    statistics = metric.statistics(predictions, references)
    assert statistics.tolist() == oracle._extract_corpus_statistics(
        predictions, streams(references)
    )
    edits, length = int(statistics[:, 0].sum()), float(ExactSum(statistics[:, 1].tolist()))
    expected = oracle.corpus_score(predictions, streams(references)).score
    found = metric.scores([edits, length])["ter"]
    assert found is None if length == 0 else found == pytest.approx(expected, abs=0, rel=1e-12)
    for row, score in enumerate(metric.example_scores(statistics)["ter"].tolist()):
        if math.isnan(score):
            assert statistics[row, 1] == 0
        else:
            assert score == oracle.sentence_score(predictions[row], references[row]).score


@settings(deadline=None, max_examples=150)
@given(examples=rows().filter(bool), chosen=options)
def test_statistics_and_scores_equal_sacrebleu(examples: Rows, chosen: dict[str, bool]) -> None:
    _check_against_sacrebleu(examples, **chosen)


@pytest.mark.parametrize("chosen", [{}, dict.fromkeys(NAMES, True)])
def test_traps_equal_sacrebleu(chosen: dict[str, bool]) -> None:
    _check_against_sacrebleu(
        [(text, [text[::-1], NASTY[-1 - row]]) for row, text in enumerate(NASTY)], **chosen
    )


def test_golden_numbers() -> None:
    # By hand, after Snover et al. 2006, section 2: one shift and one insertion against 4 words; the
    # other reference needs more edits, but its 6 words count in the mean length (5).
    metric = Ter()
    row = metric.statistics(["c d a"], [["a b c d", "v w x y z u"]])
    assert row.tolist() == [[2, 5]]
    assert metric.scores(row[0].tolist()) == {"ter": 40, "ter.edits": 2, "ter.ref_len": 5}


def test_undefined_without_a_word_in_the_references() -> None:
    metric = Ter()
    statistics = metric.statistics(["a", "", ""], [["", " "], [""], ["a"]])
    found = metric.example_scores(statistics)["ter"]
    assert np.isnan(found[:2]).all()
    assert found[2] == 100


@pytest.mark.parametrize("chosen", [{}, dict.fromkeys(NAMES, True)])
def test_signature_is_sacrebleus(chosen: dict[str, bool]) -> None:
    oracle = TER(**chosen)
    oracle.corpus_score(["a"], [["a"], ["b"]])
    assert Ter(TerOptions(**chosen)).signature(2) == str(oracle.get_signature())
