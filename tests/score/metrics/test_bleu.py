from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from pipeline.errors import ConfigError
from pipeline.score.characters import TOKENIZERS
from pipeline.score.metrics import bleu
from pipeline.score.metrics.bleu import Bleu, BleuOptions
from tests.score.metrics.oracles import NASTY, Rows, streams
from tests.score.strategies import rows

SMOOTHINGS = [
    {"smooth_method": "exp"},
    {"smooth_method": "none"},
    {"smooth_method": "floor"},
    {"smooth_method": "floor", "smooth_value": 0.0},
    {"smooth_method": "add-k"},
    {"smooth_method": "add-k", "smooth_value": 2.5},
    {"smooth_method": "add-k", "smooth_value": 0.0},
]
options = st.fixed_dictionaries(
    {
        "tokenize": st.sampled_from(TOKENIZERS),
        "lowercase": st.booleans(),
        "max_ngram_order": st.sampled_from([4, 4, 1, 2, 6]),
    }
)


def _check_against_sacrebleu(examples: Rows, **chosen: object) -> None:
    predictions, references = [row[0] for row in examples], [row[1] for row in examples]
    oracle = BLEU(**chosen)
    expected = oracle._extract_corpus_statistics(predictions, streams(references))
    statistics = Bleu(BleuOptions(**chosen)).statistics(predictions, references)
    assert statistics.tolist() == expected


@settings(deadline=None, max_examples=200)
@given(examples=rows().filter(bool), chosen=options)
def test_statistics_equal_sacrebleu(examples: Rows, chosen: dict[str, object]) -> None:
    _check_against_sacrebleu(examples, **chosen)


@pytest.mark.parametrize("tokenize", TOKENIZERS)
@pytest.mark.parametrize("lowercase", [False, True])
def test_statistics_of_traps_equal_sacrebleu(tokenize: str, lowercase: bool) -> None:
    examples = [(text, [text, NASTY[-1 - row]]) for row, text in enumerate(NASTY)]
    examples += [(NASTY[-1 - row], [text]) for row, text in enumerate(NASTY)]
    _check_against_sacrebleu(examples, tokenize=tokenize, lowercase=lowercase)


@pytest.mark.parametrize("tokenize", TOKENIZERS)
def test_every_character_of_unicode_is_tokenized_as_by_sacrebleu(tokenize: str) -> None:
    # Each in the places that matter: between letters, digits, points, and at the ends.
    points = range(0x110000)
    texts = [
        "".join(f"a{c}.{c}1{c},{c}-{c}" for c in map(chr, points[start : start + 64]))
        for start in range(0, 0x3400, 64)
    ]
    texts += ["".join(map(chr, points[start : start + 256])) for start in range(0, 0x110000, 256)]
    _check_against_sacrebleu([(text, [text]) for text in texts], tokenize=tokenize)


def test_other_tokenizers_run_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.score.words.TOKENIZERS", ("none",))
    _check_against_sacrebleu([(text, [text[1:], text[:-1]]) for text in NASTY], tokenize="13a")


def test_a_tokenizer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise RuntimeError("Please install:\n\n  pip install 'sacrebleu[ja]'")

    monkeypatch.setattr("pipeline.score.words.sacrebleu_tokenizer", fail)
    with pytest.raises(ConfigError, match=r"'ja-mecab': Please install: pip install 'sacrebleu\["):
        Bleu(BleuOptions(tokenize="ja-mecab"))


@settings(deadline=None, max_examples=150)
@given(
    examples=rows().filter(bool),
    chosen=options,
    smoothing=st.sampled_from(SMOOTHINGS),
    effective_order=st.booleans(),
)
def test_scores_equal_sacrebleu(
    examples: Rows,
    chosen: dict[str, object],
    smoothing: dict[str, object],
    effective_order: bool,
) -> None:
    predictions, references = [row[0] for row in examples], [row[1] for row in examples]
    chosen = {**chosen, **smoothing}
    metric = Bleu(BleuOptions(**chosen, effective_order=effective_order))
    statistics = metric.statistics(predictions, references)

    oracle = BLEU(**chosen, effective_order=effective_order)
    expected = oracle.corpus_score(predictions, streams(references))
    scores = metric.scores(statistics.sum(axis=0).tolist())
    if scores["bleu"] is None:
        assert (expected.score, expected.ref_len) == (0, 0)
    else:
        assert scores["bleu"] == expected.score
        assert scores["bleu.bp"] == expected.bp
        precisions = [
            scores[f"bleu.precision_{n + 1}"] for n in range(metric.options.max_ngram_order)
        ]
        assert precisions == expected.precisions
    assert (scores["bleu.sys_len"], scores["bleu.ref_len"]) == (expected.sys_len, expected.ref_len)

    sentence = BLEU(**chosen, effective_order=True)
    for row, score in enumerate(metric.example_scores(statistics)["bleu"].tolist()):
        expected_score = sentence.sentence_score(predictions[row], references[row]).score
        assert score == expected_score or (np.isnan(score) and expected_score == 0)


def test_golden_numbers() -> None:
    # Oracle: sacrebleu 2.6.0, the example of its README:
    # corpus_score(sys, refs) = 48.53 82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17
    # ref_len = 18), two references each.
    predictions = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
    references = [
        ["The dog bit the man.", "The dog had bit the man."],
        ["It was not unexpected.", "No one was surprised."],
        ["The man bit him first.", "The man had bitten the dog."],
    ]
    metric = Bleu()
    totals = metric.statistics(predictions, references).sum(axis=0).tolist()
    scores = metric.scores(totals)
    assert scores["bleu"] == pytest.approx(48.530827009929865, abs=1e-12)
    assert scores["bleu.bp"] == pytest.approx(0.9428731438548749, abs=1e-12)
    assert (scores["bleu.sys_len"], scores["bleu.ref_len"]) == (17, 18)


def test_statistics_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    predictions = [f"the {row % 3} cat sat, {row}." for row in range(50)]
    references = [[f"the {row % 2} cat sat.", "a cat"][: 1 + row % 2] for row in range(50)]
    whole = Bleu().statistics(predictions, references)
    monkeypatch.setattr(bleu, "BLOCK_ROWS", 7)
    assert np.array_equal(Bleu().statistics(predictions, references), whole)


def test_scoring_leaves_the_totals_alone() -> None:
    # compute_bleu adds k to the lists it is given.
    totals = [5, 5, 4, 2, 1, 0, 5, 4, 3, 2]
    Bleu(BleuOptions(smooth_method="add-k")).scores(totals)
    assert totals == [5, 5, 4, 2, 1, 0, 5, 4, 3, 2]


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"lowercase": True, "tokenize": "intl", "effective_order": True},
        {"smooth_method": "floor", "smooth_value": 0.25},
    ],
)
def test_signature_is_sacrebleus(chosen: dict[str, object]) -> None:
    oracle = BLEU(**chosen)
    oracle.corpus_score(["a"], [["a"], ["b"]])
    assert Bleu(BleuOptions(**chosen)).signature(2) == str(oracle.get_signature())
    oracle.corpus_score(["a", "b"], [["a", "b"], ["b", None]])
    assert Bleu(BleuOptions(**chosen)).signature() == str(oracle.get_signature())


def test_an_order_that_is_not_4_stands_in_the_signature() -> None:
    assert "|order:2|version:" in Bleu(BleuOptions(max_ngram_order=2)).signature(1)
