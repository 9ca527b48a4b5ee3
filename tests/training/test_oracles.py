"""What is recorded is what a plain trainer with ``compute_metrics`` finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

from pipeline.errors import ModelError
from pipeline.training import Recorder
from tests.training.oracle import (
    Kept,
    best_ids,
    bleu,
    label_texts,
    read,
    rouge_l,
    wer,
)
from tests.training.trainers import Collator, arguments, causal_rows, load, make_trainer


def words(ids: list[list[int]], trainer: Any) -> list[str]:
    texts: list[str] = trainer.processing_class.batch_decode(ids, skip_special_tokens=True)
    return texts


@pytest.mark.parametrize("slices", [True, False])
@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_ids_loss_and_scores_of_forced_labels(
    kind: str, slices: bool, models: Path, tmp_path: Path
) -> None:
    kept = Kept()
    plain = make_trainer(models, kind, compute_metrics=kept)
    expected = plain.evaluate()
    trainer = make_trainer(models, kind)
    recorder = Recorder(tmp_path, ["rouge", "bleu", "perplexity"], slices=slices)
    assert recorder.attach(trainer) is trainer
    found = trainer.evaluate()

    rows = read(tmp_path / "eval" / "step-00000000")
    ids = best_ids(kept, causal=kind == "causal")
    assert rows["prediction_ids"] == ids
    assert len({tuple(row) for row in ids}) == 7
    assert rows["references"] == [[text] for text in label_texts(plain, kept.labels)]
    assert rows["id"] == list("0123456")
    assert set(rows["finish_reason"]) == {"forced"}
    assert rows["batch_rows"] == [3, 3, 3, 3, 3, 3, 1]

    logits, labels = torch.tensor(kept.predictions), torch.tensor(kept.labels)
    if kind == "causal":
        logits, labels = logits[:, :-1], labels[:, 1:]
    nll = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    assert rows["nll"] == pytest.approx(nll.double().sum(1).tolist(), rel=1e-5)
    assert rows["label_tokens"] == (labels != -100).sum(1).tolist()
    assert rows["correct_tokens"] == (logits.argmax(-1) == labels).sum(1).tolist()

    if slices:
        assert found["eval_loss"] == pytest.approx(expected["eval_loss"], rel=1e-6)
    else:
        assert found["eval_loss"] == expected["eval_loss"]
    texts = words(ids, plain), label_texts(plain, kept.labels)
    assert found["eval_rougeL"] == pytest.approx(rouge_l(*texts), abs=1e-12)
    assert found["eval_bleu"] == pytest.approx(bleu(*texts), abs=1e-9)
    perplexity = np.exp(sum(rows["nll"]) / sum(rows["label_tokens"]))
    assert found["eval_perplexity"] == pytest.approx(perplexity)
    assert trainer.state.log_history[-1]["eval_rougeL"] == found["eval_rougeL"]


def test_scores_are_not_all_zero_where_the_model_knows_its_rows(
    models: Path, tmp_path: Path
) -> None:
    kept = Kept()
    settings = {"rows": 4, "max_steps": 60, "learning_rate": 3e-2, "logging_steps": 60}
    plain = make_trainer(models, compute_metrics=kept, **settings)
    plain.train()
    plain.evaluate()
    trainer = make_trainer(models, **settings)
    Recorder(tmp_path, ["rouge", "bleu"]).attach(trainer)
    trainer.train()
    found = trainer.evaluate()
    texts = words(best_ids(kept, causal=True), plain), label_texts(plain, kept.labels)
    assert found["eval_rougeL"] > 0.3
    assert found["eval_rougeL"] == pytest.approx(rouge_l(*texts), abs=1e-12)
    assert found["eval_bleu"] == pytest.approx(bleu(*texts), abs=1e-9)
    assert (tmp_path / "eval" / "step-00000060" / "run.json").exists()


def test_generated_ids_and_their_scores(models: Path, tmp_path: Path) -> None:
    kept = Kept()
    plain = make_trainer(models, "seq2seq", generate=True, compute_metrics=kept)
    expected = plain.evaluate()
    trainer = make_trainer(models, "seq2seq", generate=True)
    Recorder(tmp_path, ["rouge", "bleu"]).attach(trainer)
    found = trainer.evaluate()
    rows = read(tmp_path / "eval" / "step-00000000")
    start, end, pad = 0, 1, 0
    for ids, row, why in zip(
        rows["prediction_ids"], kept.predictions, rows["finish_reason"], strict=True
    ):
        assert row[0] == start
        assert row[1 : 1 + len(ids)].tolist() == ids
        assert set(row[1 + len(ids) :].tolist()) <= {pad}
        assert why == ("eos" if ids[-1] == end else "length")
    texts = words(kept.predictions, plain), label_texts(plain, kept.labels)
    assert [row[0] for row in rows["references"]] == texts[1]
    assert found["eval_rougeL"] == pytest.approx(rouge_l(*texts), abs=1e-12)
    assert found["eval_bleu"] == pytest.approx(bleu(*texts), abs=1e-9)
    assert found["eval_loss"] == pytest.approx(expected["eval_loss"], rel=1e-6)


def test_arguments_of_generation_pass(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models, "seq2seq", generate=True)
    Recorder(tmp_path).attach(trainer)
    trainer.evaluate(max_new_tokens=3)
    rows = read(tmp_path / "eval" / "step-00000000")
    assert max(map(len, rows["prediction_ids"])) == 3


def test_generated_rows_that_end_are_cut_there(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models, "seq2seq", generate=True)
    model = trainer.model
    before = model.generate

    def generate(**inputs: Any) -> torch.Tensor:
        ids = before(**inputs)
        ids[0, 3:] = torch.tensor([1] + [0] * (ids.shape[1] - 4))
        return ids

    model.generate = generate
    Recorder(tmp_path).attach(trainer)
    trainer.evaluate()
    rows = read(tmp_path / "eval" / "step-00000000")
    assert [row[-1] == 1 for row in rows["prediction_ids"]][::3] == [True] * 3
    assert [len(row) for row in rows["prediction_ids"]][::3] == [3] * 3
    assert rows["finish_reason"][:4] == ["eos", "length", "length", "eos"]


class Continues(Seq2SeqTrainer):
    """A causal model that generates: transformers' own step hands it the labels, and refuses."""

    def prediction_step(
        self, model: Any, inputs: Any, prediction_loss_only: bool, ignore_keys: Any = None
    ) -> Any:
        inputs = self._prepare_inputs(inputs)
        prompt = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        return None, model.generate(**prompt, max_new_tokens=4, min_new_tokens=4), inputs["labels"]


def test_a_causal_model_that_generates_gives_its_new_tokens_alone(
    models: Path, tmp_path: Path
) -> None:
    model, tokenizer = load(models, "causal")
    rows = causal_rows(tokenizer, 3).remove_columns("labels")
    rows = rows.map(lambda row: {"labels": row["input_ids"]})
    settings = arguments(
        tmp_path / "out",
        Seq2SeqTrainingArguments,
        predict_with_generate=True,
        per_device_eval_batch_size=1,
    )
    trainer = Continues(
        model=model,
        args=settings,
        eval_dataset=rows,
        processing_class=tokenizer,
        data_collator=Collator(tokenizer),
    )
    Recorder(tmp_path, ["rouge"]).attach(trainer)
    assert "eval_rougeL" in trainer.evaluate()
    found = read(tmp_path / "eval" / "step-00000000")
    assert found["prompt_tokens"] == [len(row["input_ids"]) for row in rows]
    for ids, row in zip(found["prediction_ids"], rows, strict=True):
        prompt = torch.tensor([row["input_ids"]])
        new = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=4, min_new_tokens=4
        )
        assert ids == new[0, prompt.shape[1] :].tolist()


def test_frames_of_a_ctc_model_and_its_word_error_rate(models: Path, tmp_path: Path) -> None:
    kept = Kept()
    plain = make_trainer(models, "ctc", compute_metrics=kept)
    expected = plain.evaluate()
    trainer = make_trainer(models, "ctc")
    Recorder(tmp_path, ["wer", "cer"]).attach(trainer)
    found = trainer.evaluate()
    rows = read(tmp_path / "eval" / "step-00000000")
    # Each row alone has no padding, so all of its frames are its own.
    alone = []
    for row in plain.eval_dataset:
        with torch.inference_mode():
            logits = plain.model(torch.tensor([row["input_values"]])).logits
        ids = logits.argmax(-1)[0].tolist()
        alone.append((len(ids), plain.processing_class.decode(ids)))
    assert rows["prompt_tokens"] == [frames for frames, _ in alone]
    references = label_texts(plain, kept.labels, group_tokens=False, skip_special_tokens=False)
    assert [row[0] for row in rows["references"]] == references
    assert "l" * 2 not in "".join(references)
    assert found["eval_loss"] == expected["eval_loss"]
    # Padding changes what the model hears at the end, so the frames of the batch are the oracle.
    frames = [
        row[:length] for row, length in zip(
            kept.predictions.argmax(-1), rows["prompt_tokens"], strict=True
        )
    ]  # fmt: skip
    texts = [plain.processing_class.decode(row) for row in frames]
    assert rows["prediction"] == texts
    assert found["eval_wer"] == pytest.approx(wer(texts, references))
    assert len(set(texts)) == 7


def test_several_texts_of_a_row_are_refused(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models, "seq2seq", rows=2, generate=True)
    Recorder(tmp_path).attach(trainer)
    with pytest.raises(ModelError, match="gives 4 predictions for the 2 rows of a batch"):
        trainer.evaluate(num_beams=2, num_return_sequences=2, max_new_tokens=2)


def test_the_end_that_was_asked_of_an_evaluation(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models, "seq2seq", rows=2, generate=True)
    Recorder(tmp_path).attach(trainer)
    trainer.evaluate(max_new_tokens=4)
    first = [row[0] for row in read(tmp_path / "eval" / "step-00000000")["prediction_ids"]]
    trainer.evaluate(max_new_tokens=4, eos_token_id=first)
    rows = read(tmp_path / "eval" / "step-00000000")
    assert rows["prediction_ids"] == [[ids] for ids in first]
    assert rows["finish_reason"] == ["eos", "eos"]


def test_a_text_that_begins_with_what_ends_it(models: Path, tmp_path: Path) -> None:
    expected = make_trainer(models, "seq2seq", rows=2, generate=True)
    Recorder(tmp_path / "named").attach(expected)
    trainer = make_trainer(models, "seq2seq", rows=2, generate=True)
    for model in (expected.model, trainer.model):
        model.generation_config.decoder_start_token_id = 1
    expected.evaluate(max_new_tokens=4)
    for config in (trainer.model.generation_config, trainer.model.config):
        config.decoder_start_token_id, config.bos_token_id = None, 1
    trainer.model._shift_right = expected.model._shift_right
    Recorder(tmp_path / "unnamed").attach(trainer)
    trainer.evaluate(max_new_tokens=4)
    named, unnamed = (
        read(tmp_path / name / "eval" / "step-00000000") for name in ("named", "unnamed")
    )
    assert unnamed["prediction_ids"] == named["prediction_ids"]
    assert [len(row) for row in unnamed["prediction_ids"]] == [4, 4]
