"""docs/out-of-memory.md: each error and figure that it shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    EarlyStoppingCallback,
    GPT2Config,
    GPT2LMHeadModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_callback import logger as callback_logger

from tests.models import save_gpt2, save_tokenizer
from tests.project import ROOT

DOC = (ROOT / "docs/out-of-memory.md").read_text()
ERRORS = [
    line
    for block in re.findall(r"```text\n(.*?)```", DOC, re.DOTALL)
    for line in block.splitlines()
]
VOCABULARY, TOKENS, ROWS = 64, 8, 10


def rows(count: int = ROWS) -> list[dict[str, list[int]]]:
    """Rows of ``TOKENS`` tokens, none of them twice in a row."""
    ids = [[(row * 11 + place * 7) % 60 + 2 for place in range(TOKENS)] for row in range(count)]
    return [{"input_ids": row, "labels": row} for row in ids]


def gpt2(**settings: Any) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=32, n_embd=16, n_layer=2, n_head=2,
        bos_token_id=1, eos_token_id=1, pad_token_id=0, **settings,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def t5() -> T5ForConditionalGeneration:
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=VOCABULARY, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
        pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
    )  # fmt: skip
    return T5ForConditionalGeneration(config)


class Kept:
    """A compute_metrics that keeps what it is given."""

    def __init__(self) -> None:
        self.predictions: Any = None
        self.labels: Any = None

    def __call__(self, evaluated: Any) -> dict[str, float]:
        self.predictions, self.labels = evaluated.predictions, evaluated.label_ids
        return {"kept": 1.0}


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Any]:
    """A trainer; arguments of TrainingArguments by ``arguments``."""

    def made(model: Any = None, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
        kind, kind_of = Trainer, TrainingArguments
        if "predict_with_generate" in (arguments or {}):
            kind, kind_of = Seq2SeqTrainer, Seq2SeqTrainingArguments
        defaults = {
            "per_device_eval_batch_size": 4, "per_device_train_batch_size": 4, "max_steps": 2,
            "report_to": [], "disable_tqdm": True, "use_cpu": True, "save_strategy": "no",
            "dataloader_pin_memory": False,
        }  # fmt: skip
        args = kind_of(output_dir=str(tmp_path), **{**defaults, **(arguments or {})})
        data = {"train_dataset": rows(), "eval_dataset": rows()}
        return kind(model=model or gpt2(), args=args, **{**data, **options})

    return made


def shown(error: BaseException) -> str:
    """The first line of ``error`` as Python prints it, which must stand in the page."""
    line = f"{type(error).__name__}: {error}".splitlines()[0]
    assert any(line.startswith(known) for known in ERRORS if ":" in known), line
    return line


def fails(call: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # the page says which one
        call()
    return shown(caught.value)


def test_the_batch_size_is_no_argument_of_evaluate(make: Any, kept: Kept) -> None:
    trainer = make(compute_metrics=kept)
    assert "Trainer.evaluate()" in fails(lambda: trainer.evaluate(per_device_eval_batch_size=2))
    generating = make(t5(), {"predict_with_generate": True}, compute_metrics=kept)
    assert "model_kwargs" in fails(lambda: generating.evaluate(per_device_eval_batch_size=2))
    assert len(trainer.get_eval_dataloader()) == 3
    trainer.args.per_device_eval_batch_size = 2
    assert len(trainer.get_eval_dataloader()) == 5
    assert TrainingArguments(output_dir=trainer.args.output_dir).per_device_eval_batch_size == 8


def test_predictions_are_logits_in_numpy(make: Any, kept: Kept, tmp_path: Path) -> None:
    make(compute_metrics=kept).evaluate()
    predictions = kept.predictions
    assert predictions.shape == (ROWS, TOKENS, VOCABULARY)
    assert predictions.dtype == np.float32
    fails(lambda: predictions.cpu())
    fails(lambda: torch.argmax(predictions, dim=-1))
    tokenizer = save_tokenizer(tmp_path)
    fails(lambda: tokenizer.batch_decode(predictions))
    kept.labels[0, -2:] = -100
    fails(lambda: tokenizer.batch_decode(kept.labels))


def test_logits_are_not_shifted(make: Any, kept: Kept) -> None:
    by_heart = {"max_steps": 60, "learning_rate": 2e-2}
    model = gpt2(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    one = rows(1)
    trainer = make(model, by_heart, train_dataset=one, eval_dataset=one, compute_metrics=kept)
    trainer.train()
    trainer.evaluate()
    best = kept.predictions.argmax(-1)[:, :-1]  # after the last token there is none to guess
    assert (best == kept.labels[:, 1:]).mean() == 1
    assert (best == kept.labels[:, :-1]).mean() == 0


def test_the_first_of_logits_is_a_row(make: Any, kept: Kept) -> None:
    def first(logits: Any, labels: Any) -> Any:
        return torch.argmax(logits[0], dim=-1), labels

    make(compute_metrics=kept, preprocess_logits_for_metrics=first).evaluate()
    assert kept.predictions[0].shape == (18,)
    assert "(18,) in place of (10, 8)" in DOC
    make(t5(), compute_metrics=kept, preprocess_logits_for_metrics=first).evaluate()
    assert kept.predictions[0].shape == (ROWS, TOKENS)


def test_other_outputs_are_kept(make: Any, kept: Kept) -> None:
    make(t5(), compute_metrics=kept).evaluate()
    logits, hidden = kept.predictions
    assert hidden.shape == (ROWS, TOKENS, 16)  # encoder_last_hidden_state
    trainer = make(gpt2(output_hidden_states=True), compute_metrics=kept)
    trainer.evaluate()
    logits, layers = kept.predictions
    assert [layer.shape for layer in layers] == [(ROWS, TOKENS, 16)] * 3
    trainer.evaluate(ignore_keys=["past_key_values", "hidden_states"])
    assert kept.predictions.shape == logits.shape


class Watch(TrainerCallback):
    """Notes what a model is during evaluations and steps."""

    def __init__(self) -> None:
        self.evaluating: set[Any] = set()
        self.gradients: dict[str, list[bool]] = {"step": [], "substep": []}

    def on_prediction_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.evaluating.add(others["model"].dtype)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._note("step", others["model"])

    def on_substep_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._note("substep", others["model"])

    def _note(self, when: str, model: Any) -> None:
        self.gradients[when].append(any(weight.grad is not None for weight in model.parameters()))


def test_evaluate_is_in_eval_mode_without_gradients(make: Any, kept: Kept) -> None:
    model, seen = gpt2(), set()
    model.train()
    model.register_forward_hook(lambda *_: seen.add((model.training, torch.is_grad_enabled())))
    with torch.enable_grad():
        make(model, compute_metrics=kept).evaluate()
    assert seen == {(False, False)}


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing:FutureWarning")
def test_checkpointing_is_for_the_backward_pass(make: Any, kept: Kept) -> None:
    model = gpt2()
    trainer = make(model, {"activation_checkpointing": True}, compute_metrics=kept)
    trainer.train()
    calls = []
    for layer in model.modules():
        if hasattr(layer, "_gradient_checkpointing_func"):
            own = layer._gradient_checkpointing_func
            layer._gradient_checkpointing_func = lambda *a, own=own, **k: (
                calls.append(1) or own(*a, **k)
            )
    trainer.evaluate()
    assert not calls
    model.train()
    ids = torch.tensor([rows(1)[0]["input_ids"]])
    model(input_ids=ids, labels=ids)
    assert len(calls) == 2  # both layers


def test_gradients_are_gone_at_the_end_of_a_step(make: Any) -> None:
    watch = Watch()
    make(arguments={"gradient_accumulation_steps": 2}, callbacks=[watch]).train()
    assert watch.gradients["step"] == [False, False]
    assert watch.gradients["substep"]
    assert all(watch.gradients["substep"])


def test_half_precision(make: Any, kept: Kept) -> None:
    make(arguments={"bf16": True}, compute_metrics=kept).evaluate()
    assert kept.predictions.dtype == np.float32
    full = make(arguments={"bf16_full_eval": True}, compute_metrics=kept)
    full.evaluate()
    assert full.model.dtype == torch.bfloat16
    assert kept.predictions.dtype == np.float32
    watch = Watch()
    during = {"bf16_full_eval": True, "eval_strategy": "steps", "eval_steps": 2}
    make(arguments=during, compute_metrics=kept, callbacks=[watch]).train()
    assert watch.evaluating == {torch.float32}


def test_settings_without_metrics(make: Any, kept: Kept) -> None:
    make(arguments={"prediction_loss_only": True}, compute_metrics=kept).evaluate()
    assert kept.predictions is None
    make(arguments={"eval_do_concat_batches": False}, compute_metrics=kept).evaluate()
    assert [len(batch) for batch in kept.predictions] == [4, 4, 2]


def test_the_batch_finder_leaves_evaluation_alone(make: Any) -> None:
    def full(evaluated: Any) -> dict[str, float]:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 12.94 GiB.")

    finding = {"auto_find_batch_size": True, "eval_strategy": "steps", "eval_steps": 1}
    assert "auto_find" in fails(make(arguments=finding, compute_metrics=full).train)


def test_quantized_models_are_refused(make: Any, kept: Kept, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    folder = save_gpt2(tmp_path / "model")
    config = BitsAndBytesConfig(load_in_8bit=True)
    model = AutoModelForCausalLM.from_pretrained(folder, quantization_config=config)
    assert type(model.lm_head) is torch.nn.Linear
    fails(lambda: make(model, compute_metrics=kept))


def test_the_optimizer_has_two_moments(make: Any) -> None:
    trainer = make()
    trainer.train()
    weights = sum(weight.numel() for weight in trainer.model.parameters())
    moments = [
        value for state in trainer.optimizer.state.values() for name, value in state.items()
        if name != "step"
    ]  # fmt: skip
    assert sum(value.numel() * value.element_size() for value in moments) == 8 * weights


class EvaluateTrain(TrainerCallback):
    """What the page warns of."""

    trainer: Any

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.trainer.evaluate(self.trainer.train_dataset)


def test_an_evaluation_in_a_callback_changes_training(make: Any, kept: Kept) -> None:
    trained = []
    for callbacks in ([], [EvaluateTrain()]):
        stopping = EarlyStoppingCallback(2)
        trainer = make(
            arguments={
                "max_steps": 4, "eval_strategy": "steps", "eval_steps": 4,
                "metric_for_best_model": "eval_kept", "greater_is_better": True,
                "seed": 7,
            },
            compute_metrics=kept, callbacks=[*callbacks, stopping],
        )  # fmt: skip
        if callbacks:
            callbacks[0].trainer = trainer
        stopping.counted = 0
        own = stopping.check_metric_value
        stopping.check_metric_value = lambda *a, s=stopping, own=own: (
            setattr(s, "counted", s.counted + 1) or own(*a)
        )
        trainer.train()
        trained.append((trainer.model.state_dict(), stopping.counted))
    (alone, once), (beside, often) = trained
    assert any(not torch.equal(alone[name], beside[name]) for name in alone)
    assert once == 1
    assert often > once


def test_early_stopping_is_not_disabled(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(callback_logger, "warning", said.append)
    sets = {"validation": rows(4), "train": rows(4)}
    trainer = make(
        arguments={
            "max_steps": 10, "eval_strategy": "steps", "eval_steps": 1, "greater_is_better": True,
            "metric_for_best_model": "eval_validation_rougeL",
        },
        eval_dataset=sets, compute_metrics=lambda _: {"rougeL": 0.5},
        callbacks=[EarlyStoppingCallback(2)],
    )  # fmt: skip
    trainer.train()
    assert any(line in ERRORS for line in said)
    assert trainer.state.global_step < 10


def test_the_remedy_of_the_page(make: Any, tmp_path: Path) -> None:
    (block,) = [
        text for text in re.findall(r"```python\n(.*?)```", DOC, re.DOTALL) if "wanted" in text
    ]
    tokenizer = save_tokenizer(tmp_path)
    for model in (gpt2(), t5()):
        scored: list[Any] = []

        def score(predictions: list[str], references: list[str], into: Any = scored) -> Any:
            into += zip(predictions, references, strict=True)
            return {}

        names: dict[str, Any] = {
            "model": model, "tokenizer": tokenizer, "score_with_your_library": score,
        }  # fmt: skip
        exec(block, names)
        functions = {
            name: names[name] for name in ("compute_metrics", "preprocess_logits_for_metrics")
        }
        make(model, **functions).evaluate()
        start = 0 if model.config.is_encoder_decoder else 1
        assert [reference for _, reference in scored] == [
            tokenizer.decode(row["labels"], skip_special_tokens=True) for row in rows()
        ]
        with torch.no_grad():
            ids = torch.tensor([row["input_ids"] for row in rows()])
            best = model(input_ids=ids, labels=ids).logits.argmax(-1)
        best = best if start == 0 else best[:, :-1]
        assert [predicted for predicted, _ in scored] == tokenizer.batch_decode(
            best, skip_special_tokens=True
        )


def test_the_watch_of_the_page(make: Any, kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = [
        text for text in re.findall(r"```python\n(.*?)```", DOC, re.DOTALL) if "psutil" in text
    ]
    exec(block, {"trainer": make(compute_metrics=kept)})
    printed = capsys.readouterr().out
    assert len(re.findall(r"^RAM \d+\.\d\d GB", printed, re.MULTILINE)) == 3


LIMITED = """
import resource, sys
from pathlib import Path
import torch
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from tests.models import save_tokenizer
place, way = Path(sys.argv[1]), sys.argv[2]
ids = [[(row + token) % 300 for token in range(64)] for row in range(352)]
config = GPT2Config(vocab_size=10_000, n_positions=64, n_embd=16, n_layer=1, n_head=2)
trainer = Trainer(
    model=GPT2LMHeadModel(config),
    args=TrainingArguments(
        output_dir=str(place / way), report_to=[], disable_tqdm=True, use_cpu=True,
        dataloader_pin_memory=False,
    ),
    eval_dataset=Dataset.from_dict({"input_ids": ids, "labels": ids}),
    compute_metrics=(lambda evaluated: {}) if way == "plain" else None,
    processing_class=save_tokenizer(place / "tokenizer"),
)
if way == "recorder":
    from pipeline.training import Recorder
    Recorder(place / "evaluations", score=["rouge", "bleu"]).attach(trainer)
trainer.evaluate(Dataset.from_dict({"input_ids": ids[:8], "labels": ids[:8]}))
lines = Path("/proc/self/status").read_text().splitlines()
(now,) = [int(line.split()[1]) for line in lines if line.startswith("VmData")]
most = (now << 10) + 400_000_000
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
print("rougeL", trainer.evaluate().get("eval_rougeL"))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="limits memory as Linux does")
def test_352_rows_in_the_same_memory(tmp_path: Path) -> None:
    """0.9 GB of logits, and 0.4 GB that are left: the trainer dies, the Recorder does not."""

    def run(way: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", LIMITED, str(tmp_path), way]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    plain = run("plain")
    assert plain.returncode != 0
    assert "can't allocate memory" in plain.stderr
    assert "nested_concat" in plain.stderr
    recorded = run("recorder")
    assert recorded.returncode == 0, recorded.stderr
    assert re.search(r"rougeL 0\.\d+|rougeL 0\.0", recorded.stdout)
