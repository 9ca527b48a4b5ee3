from __future__ import annotations

from importlib.metadata import version

import jiwer
import numpy as np
import pytest
from hypothesis import given, settings

from pipeline.score.metrics.error_rate import Cer, Wer
from tests.score.metrics.oracles import NASTY, Rows, split_rows
from tests.score.strategies import rows

METRICS = {"wer": (Wer(), jiwer.process_words), "cer": (Cer(), jiwer.process_characters)}


def _check_against_jiwer(name: str, examples: Rows) -> None:
    metric, oracle = METRICS[name]
    predictions, references = split_rows(examples)
    statistics = metric.statistics(predictions, references)
    chosen = []
    for row, (prediction, texts) in enumerate(examples):
        outputs = [oracle(text, prediction) for text in texts]
        errors = [out.substitutions + out.deletions + out.insertions for out in outputs]
        lengths = [out.hits + out.substitutions + out.deletions for out in outputs]
        best = min(range(len(texts)), key=lambda k: (errors[k], -lengths[k], k))
        chosen.append(texts[best])
        out = outputs[best]
        counts = [out.hits, out.substitutions, out.deletions, out.insertions]
        assert statistics[row].tolist() == counts
        score = metric.example_scores(statistics)[name][row]
        assert np.isnan(score) if lengths[best] == 0 else score == getattr(out, name)
    # The whole set, summed by jiwer itself.
    whole = oracle(chosen, predictions)
    totals = statistics.sum(axis=0).astype(int).tolist()
    scores = metric.scores(totals)
    assert scores[f"{name}.insertions"] == whole.insertions
    length = whole.hits + whole.substitutions + whole.deletions
    assert scores[name] == (getattr(whole, name) if length else None)


@pytest.mark.parametrize("name", METRICS)
@settings(deadline=None, max_examples=120)
@given(examples=rows().filter(bool))
def test_counts_and_scores_equal_jiwer(name: str, examples: Rows) -> None:
    _check_against_jiwer(name, examples)


@pytest.mark.parametrize("name", METRICS)
def test_traps_equal_jiwer(name: str) -> None:
    _check_against_jiwer(
        name, [(text, [text[::-1], NASTY[-1 - row], "a"]) for row, text in enumerate(NASTY)]
    )


def test_the_reference_with_the_fewest_errors_then_the_longest_then_the_first() -> None:
    metric = Wer()
    assert metric.statistics(["a b c"], [["x", "a b x", "a b"]]).tolist() == [[2, 1, 0, 0]]
    # One substitution or one insertion: the longer reference has the lower rate.
    assert metric.statistics(["a b"], [["a", "a c", "d b"]]).tolist() == [[1, 1, 0, 0]]


def test_golden_numbers() -> None:
    # Oracle: the example of jiwer's documentation: wer("hello world", "hello duck") = 0.5.
    metric = Wer()
    totals = metric.statistics(["hello duck"], [["hello world"]])[0].tolist()
    assert metric.scores(totals) == {
        "wer": 0.5, "wer.hits": 1, "wer.substitutions": 1, "wer.deletions": 0, "wer.insertions": 0,
    }  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_empty_references(name: str) -> None:
    metric, _ = METRICS[name]
    statistics = metric.statistics(["a", ""], [[""], [" "]])
    assert statistics.tolist() == [[0, 0, 0, 1], [0, 0, 0, 0]]
    assert metric.scores(statistics.sum(axis=0).tolist())[name] is None
    # Beside others, the insertion counts.
    assert metric.scores([1, 0, 0, 1])[name] == 1


def test_signature() -> None:
    assert Wer().signature(1) == f"nrefs:1|tok:default|version:jiwer-{version('jiwer')}"
