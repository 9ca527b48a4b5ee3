from __future__ import annotations

import pytest
from hypothesis import given, settings

from pipeline.score.metrics import METRICS
from pipeline.score.metrics.base import Metric
from pipeline.score.metrics.bleu import Bleu, BleuOptions
from pipeline.score.metrics.rouge import Rouge, RougeOptions
from tests.score.metrics.contract import Rows, check_contract
from tests.score.strategies import rows

METRICS_TO_CHECK = {
    **{name: kind() for name, kind in METRICS.items()},
    "rouge stemmed": Rouge(RougeOptions(types=("rouge3", "rougeL"), stemmer=True)),
    "bleu add-k": Bleu(BleuOptions(tokenize="intl", smooth_method="add-k", lowercase=True)),
    "bleu floor": Bleu(BleuOptions(tokenize="char", smooth_method="floor", max_ngram_order=2)),
    "bleu none": Bleu(BleuOptions(tokenize="zh", smooth_method="none", effective_order=True)),
}


@pytest.mark.parametrize("metric", METRICS_TO_CHECK.values(), ids=list(METRICS_TO_CHECK))
@settings(deadline=None, max_examples=40)
@given(examples=rows())
def test_every_metric_obeys_the_contract(metric: Metric, examples: Rows) -> None:
    check_contract(metric, examples)


@pytest.mark.parametrize("name", METRICS)
def test_lengths_are_checked(name: str) -> None:
    # sacrebleu 2.6.0 scores 2 predictions against 1 reference as BLEU 100.
    metric = METRICS[name]()
    with pytest.raises(ValueError, match="2 predictions but 1 lists of references"):
        metric.statistics(["a", "b"], [["a"]])
    with pytest.raises(ValueError, match="row 1 has no reference"):
        metric.statistics(["a", "b"], [["a"], []])
