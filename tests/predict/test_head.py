"""The output head by slices: what it gives is what the model's own logits give."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from pipeline.predict.finishing import FINISHING
from pipeline.predict.labels import MASKED, SLICE, LabelScorer
from tests.models import tiny_model

CAUSAL = ["gpt2", "llama", "qwen2", "opt", "gpt_neox", "gemma2", "cohere", "granite"]
SEQ2SEQ = ["t5", "bart", "marian"]
PROMPTS = [[5, 6, 7, 8, 9], [10, 11], [12, 13, 14]]
LABELS = [[20, 21, 1], [22, 23, 24, 25, 26, 1], [27]]


def kind_of(name: str) -> str:
    return "seq2seq" if name in SEQ2SEQ else "causal"


def own_logits(model: Any, name: str, prompt: list[int], labels: list[int]) -> torch.Tensor:
    """The model's logits at the labels of one row alone, as in training.  # (labels, vocabulary)"""
    with torch.inference_mode():
        if name in SEQ2SEQ:
            # With labels the model shifts them for its decoder itself.
            return model(input_ids=torch.tensor([prompt]), labels=torch.tensor([labels])).logits[0]
        logits = model(input_ids=torch.tensor([prompt + labels])).logits[0]
        return logits[len(prompt) - 1 : -1]


def widest(model: Any) -> list[int]:
    """Collects how many positions each call of the head sees."""
    seen: list[int] = []

    def note(module: Any, arguments: tuple[Any, ...], output: Any) -> None:
        seen.append(output.shape[:-1].numel())

    model.get_output_embeddings().register_forward_hook(note)
    return seen


def test_every_known_architecture_is_tested() -> None:
    assert {*CAUSAL, *SEQ2SEQ} == set(FINISHING)


@pytest.mark.parametrize("name", [*CAUSAL, *SEQ2SEQ])
def test_ids_and_likelihood_are_those_of_the_models_own_logits(name: str) -> None:
    model = tiny_model(name)
    expected = []
    for prompt, labels in zip(PROMPTS, LABELS, strict=True):
        logits = own_logits(model, name, prompt, labels).double()
        nll = torch.nn.functional.cross_entropy(logits, torch.tensor(labels), reduction="sum")
        expected.append((logits.argmax(-1).tolist(), float(nll)))
    seen = widest(model)
    scorer = LabelScorer(model, kind_of(name))
    scores = scorer.score(PROMPTS, LABELS)
    assert scorer.head.sliced
    # one position per row where the model runs, then the ten labels in one slice
    assert seen == [len(PROMPTS), sum(map(len, LABELS))]
    for score, (ids, nll), labels in zip(scores, expected, LABELS, strict=True):
        assert score.ids == ids
        assert score.nll == pytest.approx(nll, rel=1e-5)
        assert score.correct == sum(a == b for a, b in zip(ids, labels, strict=True))
    assert len({tuple(ids) for ids, _ in expected}) == 3


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_masked_labels_do_not_count(name: str) -> None:
    model = tiny_model(name)
    scorer = LabelScorer(model, kind_of(name))
    (whole,) = scorer.score([[5, 6]], [[20, 21, 22]])
    (masked,) = scorer.score([[5, 6]], [[20, 21, MASKED]])
    assert masked.ids == whole.ids[:2]
    logits = own_logits(model, name, [5, 6], [20, 21, 22])[:2]
    nll = torch.nn.functional.cross_entropy(logits, torch.tensor([20, 21]), reduction="sum")
    assert masked.nll == pytest.approx(float(nll), rel=1e-5)
    nothing = scorer.score([[5, 6], [7]], [[MASKED, MASKED], []])
    assert [(score.ids, score.nll, score.correct) for score in nothing] == [([], 0.0, 0)] * 2


def test_more_labels_than_a_slice_are_cut_into_slices() -> None:
    model = tiny_model("gpt2", max_position_embeddings=400)
    labels = [[place % 60 + 2 for place in range(300)]]
    seen = widest(model)
    (score,) = LabelScorer(model, "causal").score([[5]], labels)
    assert seen == [1, SLICE, 300 - SLICE]
    assert score.ids == own_logits(model, "gpt2", [5], labels[0]).argmax(-1).tolist()


@pytest.mark.parametrize("name", ["mistral", "mbart"])
def test_an_unknown_architecture_is_compared_once_and_sliced(name: str) -> None:
    model = tiny_model("mistral") if name == "mistral" else tiny_model("bart")
    model.config.model_type = name
    if name == "mbart":
        model.final_logits_bias.zero_()
    seen = widest(model)
    scorer = LabelScorer(model, "causal" if name == "mistral" else "seq2seq")
    scorer.score(PROMPTS, LABELS)
    first = len(seen)
    scorer.score(PROMPTS, LABELS)
    assert scorer.head.sliced
    assert seen[first:] == [3, 10]


def test_an_unknown_architecture_that_differs_falls_back_with_a_warning() -> None:
    model = tiny_model("granite")
    expected = LabelScorer(model, "causal").score(PROMPTS, LABELS)
    model.config.model_type = "granite-next"
    scorer = LabelScorer(model, "causal")
    with pytest.warns(
        UserWarning, match=r"granite-next model does not give its logits \(they diff"
    ):
        scores = scorer.score(PROMPTS, LABELS)
    assert not scorer.head.sliced
    assert [score.ids for score in scores] == [score.ids for score in expected]
    assert [score.nll for score in scores] == pytest.approx([score.nll for score in expected])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer.score(PROMPTS, LABELS)  # once is enough


def test_a_model_that_names_no_head_falls_back() -> None:
    model = tiny_model("gpt2")
    expected = LabelScorer(model, "causal").score(PROMPTS, LABELS)
    model.get_output_embeddings = lambda: None
    with pytest.warns(UserWarning, match="it names none"):
        scorer = LabelScorer(model, "causal")
    assert [score.ids for score in scorer.score(PROMPTS, LABELS)] == [s.ids for s in expected]


def test_half_precision_is_summed_in_float32() -> None:
    model = tiny_model("gpt2").to(torch.bfloat16)
    (score,) = LabelScorer(model, "causal").score(PROMPTS[:1], LABELS[:1])
    logits = own_logits(model, "gpt2", PROMPTS[0], LABELS[0]).float()
    nll = torch.nn.functional.cross_entropy(logits, torch.tensor(LABELS[0]), reduction="sum")
    assert score.nll == pytest.approx(float(nll), rel=2e-2)
    assert score.nll != round(score.nll, 1)
