"""length and repetition."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from pipeline.config import parse_section
from pipeline.errors import ConfigError
from pipeline.score.characters import TOKENIZERS
from pipeline.score.metrics.length import Length, LengthOptions
from pipeline.score.metrics.repetition import Repetition, RepetitionOptions
from pipeline.score.words import sacrebleu_tokenizer
from tests.score.metrics.oracles import Rows, split_rows, streams
from tests.score.strategies import rows


@settings(deadline=None, max_examples=100)
@given(examples=rows().filter(bool), tokenize=st.sampled_from(TOKENIZERS))
def test_length_is_what_sacrebleu_prints_beside_bleu(examples: Rows, tokenize: str) -> None:
    predictions, references = split_rows(examples)
    oracle = BLEU(tokenize=tokenize).corpus_score(predictions, streams(references))
    metric = Length(LengthOptions(tokenize=tokenize))
    totals = metric.statistics(predictions, references).sum(axis=0).astype(int).tolist()
    assert totals == [len(examples), oracle.sys_len, oracle.ref_len]
    expected = oracle.sys_len / oracle.ref_len if oracle.ref_len else None
    assert metric.scores(totals)["length_ratio"] == expected


def test_length_golden_numbers() -> None:
    metric = Length()
    totals = metric.statistics(["a b c.", ""], [["a b", "a b c d e f"], ["x y"]]).sum(axis=0)
    assert metric.scores(totals.tolist()) == {
        "length_ratio": 1, "length.prediction_tokens": 2, "length.reference_tokens": 2,
    }  # fmt: skip
    assert metric.scores([1, 5, 0])["length_ratio"] is None
    assert metric.signature(1) == "nrefs:1|tok:13a|version:2.6.0"


@settings(deadline=None, max_examples=100)
@given(examples=rows(), tokenize=st.sampled_from(TOKENIZERS), lowercase=st.booleans())
def test_repetition_counts_equal_a_counter(examples: Rows, tokenize: str, lowercase: bool) -> None:
    predictions, references = split_rows(examples)
    metric = Repetition(RepetitionOptions(tokenize=tokenize, lowercase=lowercase))
    statistics = metric.statistics(predictions, references)
    for row, prediction in enumerate(predictions):
        text = prediction.lower() if lowercase else prediction
        words = sacrebleu_tokenizer(tokenize)(text.rstrip()).split()
        expected = []
        for order in (1, 2, 3, 4):
            grams = Counter(zip(*(words[n:] for n in range(order)), strict=False))
            expected += [len(grams), grams.total()]
        assert statistics[row].tolist() == expected


def test_repetition_golden_numbers() -> None:
    # By hand: "a b a b a b": unigrams 2 of 6, bigrams 2 of 5, trigrams 2 of 4, 4-grams 2 of 3.
    metric = Repetition()
    totals = metric.statistics(["a b a b a b", ""], [["x"], ["x"]]).sum(axis=0).tolist()
    assert metric.scores(totals) == {
        "distinct1": 2 / 6, "distinct2": 2 / 5, "distinct3": 2 / 4, "repeated4": 1 - 2 / 3,
    }  # fmt: skip
    # Too short for any bigram: undefined, not 0.
    short = metric.statistics(["a"], [["x"]])[0].tolist()
    assert metric.scores(short) == {
        "distinct1": 1, "distinct2": None, "distinct3": None, "repeated4": None,
    }  # fmt: skip


def test_repetition_does_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    predictions = [f"a b {row % 3} a b" for row in range(50)]
    whole = Repetition().statistics(predictions, [[""]] * 50).tolist()
    monkeypatch.setattr("pipeline.score.metrics.repetition.BLOCK_ROWS", 7)
    assert Repetition().statistics(predictions, [[""]] * 50).tolist() == whole


def test_an_order_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a length stands twice in \[2, 2\]"):
        parse_section({"distinct": [2, 2]}, "score.metrics.repetition", RepetitionOptions)
    assert Repetition(RepetitionOptions(lowercase=True)).signature() == (
        "case:lc|tok:13a|version:2.6.0"
    )
