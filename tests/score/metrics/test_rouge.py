from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from pipeline.errors import MissingExtraError
from pipeline.score.metrics import rouge
from pipeline.score.metrics.rouge import Rouge, RougeOptions
from tests.score.strategies import any_text, rows

TYPES = ("rouge1", "rouge2", "rouge3", "rouge9", "rougeL", "rougeLsum")


@pytest.fixture
def only_rouge_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rouge_score_rs.rouge_scorer", None)


def _by_name(metric: Rouge, row: list[float]) -> dict[str, float]:
    return dict(zip([column.name for column in metric.columns], row, strict=True))


def _check_against_rouge_score(stemmer: bool, prediction: str, references: list[str]) -> None:
    metric = Rouge(RougeOptions(types=TYPES, stemmer=stemmer))
    (row,) = metric.statistics([prediction], [references]).tolist()
    found = _by_name(metric, row)
    oracle = rouge_scorer.RougeScorer(list(TYPES), use_stemmer=stemmer)
    for kind, score in oracle.score_multi(references, prediction).items():
        assert found[f"{kind}.precision"] == score.precision
        assert found[f"{kind}.recall"] == score.recall
        assert found[f"{kind}.fmeasure"] == score.fmeasure
    assert found["rouge.rows"] == 1


@settings(deadline=None, max_examples=150)
@given(
    stemmer=st.booleans(),
    prediction=any_text,
    references=st.lists(any_text, min_size=1, max_size=3),
)
def test_rows_equal_rouge_score(stemmer: bool, prediction: str, references: list[str]) -> None:
    _check_against_rouge_score(stemmer, prediction, references)


@pytest.mark.parametrize(
    ("prediction", "references"),
    [
        ("", [""]),
        ("...", ["the cat"]),
        ("the cat", ["", "the\ncat", "the cat"]),
        ("first line\nsecond line\n\nthird", ["second line\nfirst line", "third\nfirst"]),
        ("running runners ran", ["run runner running"]),
        ("кошка", ["кошка"]),
    ],
)
@pytest.mark.parametrize("stemmer", [False, True])
def test_degenerate_rows_equal_rouge_score(
    stemmer: bool, prediction: str, references: list[str]
) -> None:
    _check_against_rouge_score(stemmer, prediction, references)


@pytest.mark.usefixtures("only_rouge_score")
def test_the_fallback_is_the_oracle_itself() -> None:
    _check_against_rouge_score(True, "the cats sat", ["a cat sits", "the cat sat"])
    assert "version:rouge-score-0.1.2" in Rouge().signature(1)


@settings(deadline=None, max_examples=50)
@given(examples=rows())
def test_both_libraries_give_the_same_bits(examples: list[tuple[str, list[str]]]) -> None:
    predictions, references = [row[0] for row in examples], [row[1] for row in examples]
    metric = Rouge(RougeOptions(stemmer=True))
    fast = metric.statistics(predictions, references)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "rouge_score_rs.rouge_scorer", None)
        assert metric.statistics(predictions, references).tolist() == fast.tolist()


def test_without_either_library_the_message_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in rouge.LIBRARIES:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match="pip install rouge-score-rs"):
        Rouge().statistics(["a"], [["a"]])


def test_golden_numbers() -> None:
    # Oracle: rouge_score 0.1.2, RougeScorer(["rouge1", "rougeL"], use_stemmer=True), its README's
    # example: 'The quick brown dog jumps on the log.' scored against the fox.
    metric = Rouge(RougeOptions(types=("rouge1", "rougeL"), stemmer=True))
    fox = "The quick brown fox jumps over the lazy dog"
    row = metric.statistics(["The quick brown dog jumps on the log."], [[fox]])[0].tolist()
    found = _by_name(metric, row)
    assert found["rouge1.precision"] == 0.75
    assert found["rouge1.recall"] == 0.6666666666666666
    assert found["rouge1.fmeasure"] == 0.7058823529411765
    assert found["rougeL.fmeasure"] == 0.5882352941176471


def test_the_score_of_a_set_is_the_mean_f1_with_precision_and_recall_beside_it() -> None:
    metric = Rouge(RougeOptions(types=("rouge1",)))
    totals = metric.statistics(["a b", "c"], [["a"], ["d"]]).sum(axis=0).tolist()
    assert metric.scores(totals) == {
        "rouge1": 1 / 3,
        "rouge1.precision": 0.25,
        "rouge1.recall": 0.5,
    }


def test_signature() -> None:
    signature = Rouge(RougeOptions(stemmer=True)).signature(2)
    assert signature.startswith("nrefs:2|stem:yes|tok:default|lsum:newline|version:rouge-score-rs-")
    assert Rouge().signature().startswith("nrefs:var|stem:no|")
