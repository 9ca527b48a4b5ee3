from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.score.columns import statistics_of
from pipeline.score.contract import Rows, check_contract
from pipeline.score.metrics import METRICS
from pipeline.score.metrics.base import Column, ColumnMetric, Metric
from pipeline.score.metrics.bleu import Bleu, BleuOptions
from pipeline.score.metrics.chrf import Chrf, ChrfOptions
from pipeline.score.metrics.edit_similarity import EditSimilarity, EditSimilarityOptions
from pipeline.score.metrics.exact_match import ExactMatch, ExactMatchOptions
from pipeline.score.metrics.length import Length, LengthOptions
from pipeline.score.metrics.repetition import Repetition, RepetitionOptions
from pipeline.score.metrics.rouge import Rouge, RougeOptions
from pipeline.score.metrics.ter import Ter, TerOptions
from pipeline.score.metrics.token_f1 import TokenF1, TokenF1Options
from tests.score.strategies import rows

METRICS_TO_CHECK = {
    **{name: kind() for name, kind in METRICS.items()},
    "rouge stemmed": Rouge(RougeOptions(types=("rouge3", "rougeL"), stemmer=True)),
    "rouge unicode": Rouge(RougeOptions(tokenizer="unicode", lsum="rules")),
    "rouge zh": Rouge(RougeOptions(types=("rougeLsum", "rouge1"), tokenizer="zh", lsum="rules")),
    "bleu add-k": Bleu(BleuOptions(tokenize="intl", smooth_method="add-k", lowercase=True)),
    "bleu floor": Bleu(BleuOptions(tokenize="char", smooth_method="floor", max_ngram_order=2)),
    "bleu none": Bleu(BleuOptions(tokenize="zh", smooth_method="none", effective_order=True)),
    "chrf++": Chrf(ChrfOptions(word_order=2, beta=3, lowercase=True)),
    "chrf eps": Chrf(ChrfOptions(char_order=3, whitespace=True, eps_smoothing=True)),
    "ter normalized": Ter(TerOptions(normalized=True, no_punct=True, asian_support=True)),
    "exact_match squad": ExactMatch(ExactMatchOptions(normalize="squad")),
    "token_f1 none": TokenF1(TokenF1Options(normalize="none")),
    "edit_similarity indel": EditSimilarity(EditSimilarityOptions(distance="indel")),
    "length char": Length(LengthOptions(tokenize="char")),
    "repetition": Repetition(RepetitionOptions(distinct=(2,), repeated=1, lowercase=True)),
}


@pytest.mark.parametrize("metric", METRICS_TO_CHECK.values(), ids=list(METRICS_TO_CHECK))
@settings(deadline=None, max_examples=25)
@given(examples=rows(), data=st.data())
def test_every_metric_obeys_the_contract(
    metric: Metric, examples: Rows, data: st.DataObject
) -> None:
    columns = {}
    if isinstance(metric, ColumnMetric):
        counts = st.lists(st.integers(0, 50), min_size=len(examples), max_size=len(examples))
        columns = {name: np.array(data.draw(counts), dtype=np.float64) for name in metric.needs}
    check_contract(metric, examples, columns)


@pytest.mark.parametrize("name", METRICS)
def test_lengths_are_checked(name: str) -> None:
    # sacrebleu 2.6.0 scores 2 predictions against 1 reference as BLEU 100.
    metric = METRICS[name]()
    with pytest.raises(ValueError, match="2 predictions but 1 lists of references"):
        metric.statistics(["a", "b"], [["a"]])
    with pytest.raises(ValueError, match="row 1 has no reference"):
        metric.statistics(["a", "b"], [["a"], []])


@pytest.mark.parametrize("name", METRICS)
def test_no_rows_have_no_statistics(name: str) -> None:
    metric = METRICS[name]()
    needs = metric.needs if isinstance(metric, ColumnMetric) else ()
    found = statistics_of(metric, [], [], {need: np.empty(0) for need in needs})
    assert found.shape == (0, len(metric.columns))


class Sum(Metric):
    """Obeys the contract: adds up the numbers of characters."""

    columns = (Column("sum.characters", integer=True), Column("sum.rows", integer=True))
    headline = ("sum",)

    def statistics(self, predictions, references):  # type: ignore[no-untyped-def]
        return np.array([[len(text), 1] for text in predictions], dtype=float).reshape(-1, 2)

    def scores(self, totals, per_row=False):  # type: ignore[no-untyped-def]
        return {"sum": totals[0] / totals[1] if totals[1] else None}

    def signature(self, references_per_row=None):  # type: ignore[no-untyped-def]
        return "version:1"


class Shaped(Sum):
    def statistics(self, predictions, references):  # type: ignore[no-untyped-def]
        return np.zeros(len(predictions))


class NotANumber(Sum):
    def statistics(self, predictions, references):  # type: ignore[no-untyped-def]
        return np.full((len(predictions), 2), np.nan)


class Fraction(Sum):
    def statistics(self, predictions, references):  # type: ignore[no-untyped-def]
        return super().statistics(predictions, references) / 2


class Neighbours(Sum):
    def statistics(self, predictions, references):  # type: ignore[no-untyped-def]
        return super().statistics(predictions, references) * len(predictions)


class Modifies(Sum):
    def statistics(self, predictions, references):  # type: ignore[no-untyped-def]
        found = super().statistics(predictions, references)
        predictions[0] = predictions[0].strip()
        return found


class Counts(Sum):
    calls = 0

    def statistics(self, predictions, references):  # type: ignore[no-untyped-def]
        Counts.calls += 1
        return super().statistics(predictions, references) + Counts.calls


class Zero(Sum):
    def scores(self, totals, per_row=False):  # type: ignore[no-untyped-def]
        return {"sum": totals[0] / max(totals[1], 1)}


class Unnamed(Sum):
    def scores(self, totals, per_row=False):  # type: ignore[no-untyped-def]
        return {"other": 1.0, "sum": None}


class OwnExamples(Sum):
    def example_scores(self, statistics):  # type: ignore[no-untyped-def]
        return {"sum": statistics[:, 0] + 1}


def test_a_good_metric_passes() -> None:
    check_contract(Sum(), [("a b ", ["a"]), ("", ["", "x"])])


@pytest.mark.parametrize(
    ("metric", "law"),
    [
        (
            Shaped(),
            r"statistics\(\) gave a matrix of \(2,\), not of \(rows, columns\) = \(2, 2\)",
        ),
        (NotANumber(), r"statistics\(\) gave a statistic .* that is infinite or not a number"),
        (Fraction(), r"statistics\(\) gave a statistic sum.characters that is no whole number"),
        (Neighbours(), "rows do not know of each other"),
        (Modifies(), "its inputs are not modified"),
        (Counts(), "twice is the same"),
        (Zero(), "the headline of no rows is None"),
        (Unnamed(), r"scores\(\) begins with the headline"),
        (OwnExamples(), "the example scores of sum are those of scores"),
    ],
)
def test_each_broken_law_is_named(metric: Metric, law: str) -> None:
    with pytest.raises(AssertionError, match=f"the contract of metrics is broken: {law}"):
        check_contract(metric, [("a b ", ["a"]), ("c", ["", "x"])])
