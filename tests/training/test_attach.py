"""What a Recorder refuses, before anything is evaluated, and what it leaves as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoFeatureExtractor, GPT2ForSequenceClassification, Trainer

from pipeline.errors import ConfigError, ModelError
from pipeline.training import Recorder
from tests.training.oracle import Kept, read
from tests.training.trainers import load, make_trainer


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"compute_metrics": Kept()}, "has a compute_metrics already, which the Recorder would"),
        (
            {"preprocess_logits_for_metrics": lambda logits, labels: logits},
            "has a preprocess_logits_for_metrics already",
        ),
        ({"prediction_loss_only": True}, "prediction_loss_only=True keeps no predictions"),
        ({"eval_use_gather_object": True}, "eval_use_gather_object=True gathers rows in another"),
        ({"label_names": ["labels", "more"]}, r"labels of this trainer are \['labels', 'more'\]"),
        ({"processing_class": None}, r"processing_class of this trainer is none, which decodes"),
    ],
)
def test_trainers_that_cannot_be_recorded(
    settings: dict[str, Any], message: str, models: Path, tmp_path: Path
) -> None:
    trainer = make_trainer(models, **settings)
    before = dict(vars(trainer))
    with pytest.raises(ConfigError, match=message):
        Recorder(tmp_path, ["rouge"]).attach(trainer)
    assert vars(trainer) == before
    assert not trainer.args.batch_eval_metrics


def test_a_feature_extractor_decodes_nothing(models: Path, tmp_path: Path) -> None:
    _, tokenizer = load(models, "ctc")
    extractor = AutoFeatureExtractor.from_pretrained(models / "ctc")
    trainer = make_trainer(models, "ctc", processing_class=extractor)
    with pytest.raises(ConfigError, match="is a Wav2Vec2FeatureExtractor, which decodes no text"):
        Recorder(tmp_path, ["wer"]).attach(trainer)
    Recorder(tmp_path, ["wer"], tokenizer=tokenizer).attach(trainer)
    assert "eval_wer" in trainer.evaluate()


def test_a_processor_decodes_with_its_tokenizer(models: Path, tmp_path: Path) -> None:
    from transformers import Wav2Vec2Processor

    _, tokenizer = load(models, "ctc")
    extractor = AutoFeatureExtractor.from_pretrained(models / "ctc")
    processor = Wav2Vec2Processor(feature_extractor=extractor, tokenizer=tokenizer)
    trainer = make_trainer(models, "ctc", processing_class=processor)
    Recorder(tmp_path, ["wer"]).attach(trainer)
    assert "eval_wer" in trainer.evaluate()


def test_one_recorder_for_one_trainer(models: Path, tmp_path: Path) -> None:
    trainer, other = make_trainer(models), make_trainer(models)
    recorder = Recorder(tmp_path)
    recorder.attach(trainer)
    with pytest.raises(ConfigError, match="has a Recorder already; a second one cannot be"):
        recorder.attach(trainer)
    with pytest.raises(ConfigError, match="has a Recorder already; a second one cannot be"):
        Recorder(tmp_path).attach(trainer)
    with pytest.raises(ConfigError, match="is attached to another trainer; make one for each"):
        recorder.attach(other)
    with pytest.raises(ConfigError, match=r"has no trainer yet: call attach\(trainer\) first"):
        Recorder(tmp_path).evaluate(None, "eval")


def test_models_without_text(models: Path, tmp_path: Path) -> None:
    model = GPT2ForSequenceClassification(load(models, "causal")[0].config)
    with pytest.raises(ModelError, match="a GPT2ForSequenceClassification gives no text"):
        Recorder(tmp_path).attach(make_trainer(models, model=model))
    with pytest.raises(ConfigError, match="task: expected causal, seq2seq or ctc, got 'asr'"):
        Recorder(tmp_path, task="asr").attach(make_trainer(models))  # type: ignore[arg-type]


class Bare(torch.nn.Module):
    """A model that is none of transformers'."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: Any, attention_mask: Any = None, labels: Any = None) -> Any:
        outputs = self.inner(input_ids=input_ids, attention_mask=attention_mask, labels=labels)
        return outputs.loss, outputs.logits, outputs.logits.sum()


def test_a_model_of_the_persons_own_is_taken_with_its_task(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models, model=Bare(load(models, "causal")[0]))
    Recorder(tmp_path, ["rouge"], task="causal").attach(trainer)
    expected = make_trainer(models).evaluate()["eval_loss"]
    assert trainer.evaluate()["eval_loss"] == expected


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (["rogue"], "unknown metric 'rogue'.*did you mean rouge"),
        ([], "score.metrics is empty"),
        ("rouge", "expected a list of metrics, got 'rouge'"),
        ([{"rouge": {"stemer": True}}], "stemer"),
    ],
)
def test_metrics_are_read_when_the_recorder_is_made(score: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Recorder("evaluations", score)


def test_metrics_that_the_evaluation_cannot_feed(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models, "seq2seq", generate=True)
    with pytest.raises(ConfigError, match="perplexity needs the column nll and label_tokens"):
        Recorder(tmp_path, ["perplexity"]).attach(trainer)
    assert trainer.compute_metrics is None


def test_other_keys_of_the_section_score(models: Path, tmp_path: Path) -> None:
    import json

    trainer = make_trainer(models, "ctc")
    options = {"normalize": ["lowercase"], "confidence": 0.9, "replicates": 20}
    Recorder(tmp_path, ["wer"], score_options=options).attach(trainer)
    trainer.evaluate()
    summary = tmp_path / "eval" / "step-00000000-scores" / "summary.json"
    content = json.loads(summary.read_bytes())
    assert content["confidence"] == 0.9
    assert "norm:lowercase" in content["metrics"]["wer"]["signature"]


def test_an_evaluate_that_evaluates_otherwise_is_noticed(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models)
    trainer.evaluate = lambda **arguments: {"eval_loss": 0.0}
    Recorder(tmp_path).attach(trainer)
    with pytest.raises(ConfigError, match=r"Trainer.evaluate does not go through evaluation_loop"):
        trainer.evaluate()


class Narrow(Trainer):
    """Its evaluate takes what the training loop gives it, and examples of its own."""

    def evaluate(
        self, eval_dataset: Any = None, examples: Any = None, ignore_keys: Any = None
    ) -> Any:
        return {**super().evaluate(eval_dataset, ignore_keys), "eval_examples": examples}


def test_an_evaluate_with_other_arguments_gets_what_it_was_given(
    models: Path, tmp_path: Path
) -> None:
    trainer = make_trainer(models, eval_strategy="steps", eval_steps=4)
    trainer.__class__ = Narrow
    Recorder(tmp_path).attach(trainer)
    assert trainer.evaluate(trainer.eval_dataset.select([2]), 5)["eval_examples"] == 5
    trainer.train()
    rows = [read(tmp_path / "eval" / f"step-0000000{step}")["row"] for step in (0, 4)]
    assert list(map(len, rows)) == [1, 7]
