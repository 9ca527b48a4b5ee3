"""The loss in slices is the model's, or it is left to the model; and no logits are whole."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import GPT2LMHeadModel

from pipeline.training import Recorder
from pipeline.training.loss import _StandIn
from tests.models import tiny_model
from tests.predict.test_head import CAUSAL, SEQ2SEQ, widest
from tests.training.oracle import Kept, best_ids, read
from tests.training.trainers import load, make_trainer

SET = Path("eval") / "step-00000000"


class Doubled(GPT2LMHeadModel):
    """A model whose loss is its own."""

    def forward(
        self, input_ids: Any = None, attention_mask: Any = None, labels: Any = None, **more: Any
    ) -> Any:
        outputs = super().forward(
            input_ids=input_ids, attention_mask=attention_mask, labels=labels, **more
        )
        if outputs.loss is not None:
            outputs.loss = 2 * outputs.loss
        return outputs


@pytest.mark.parametrize("items", [None, 4])
@pytest.mark.parametrize("name", [*CAUSAL, *SEQ2SEQ])
def test_the_loss_of_every_known_architecture(name: str, items: int | None) -> None:
    model = tiny_model(name)
    accelerator = SimpleNamespace(unwrap_model=lambda model: model, autocast=nullcontext)
    trainer = SimpleNamespace(accelerator=accelerator, model=model)
    inputs = {
        "input_ids": torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]]),
        "attention_mask": torch.ones(2, 4).long(),
        "labels": torch.tensor([[-100, 6, 7, 8], [9, 10, -100, 1]]),
    }
    with torch.no_grad():
        loss = float(model(**inputs).loss)
        counted = (inputs["labels"][:, 1:] if name in CAUSAL else inputs["labels"]) != -100
        expected = loss if items is None else loss * int(counted.sum()) / items
        stand_in = _StandIn(trainer, model, causal=name in CAUSAL)
        outputs = stand_in(**inputs, num_items_in_batch=items)
    assert float(outputs["loss"]) == pytest.approx(expected, rel=1e-5)


def test_the_head_never_runs_over_a_whole_batch(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models, rows=3)
    Recorder(tmp_path).attach(trainer)
    trainer.evaluate()
    seen = widest(trainer.model)
    trainer.evaluate()
    labelled = sum(read(tmp_path / SET)["label_tokens"])
    assert seen == [3, labelled]  # one position of each row, and those with a label


def test_label_smoothing_and_a_loss_of_the_persons_own_see_logits(
    models: Path, tmp_path: Path
) -> None:
    def loss(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        return outputs["logits"].square().mean()

    cases: list[dict[str, Any]] = [
        {"label_smoothing_factor": 0.1},
        {"compute_loss_func": loss},
    ]
    for number, settings in enumerate(cases):
        kept = Kept()
        expected = make_trainer(models, compute_metrics=kept, **settings).evaluate()
        trainer = make_trainer(models, **settings)
        Recorder(tmp_path / str(number)).attach(trainer)
        assert trainer.evaluate()["eval_loss"] == expected["eval_loss"]
        found = read(tmp_path / str(number) / SET)["prediction_ids"]
        assert found == best_ids(kept, causal=True)


def test_a_model_with_a_loss_of_its_own_is_noticed(models: Path, tmp_path: Path) -> None:
    load(models, "causal")
    model = Doubled.from_pretrained(models / "causal")
    kept = Kept()
    expected = make_trainer(models, model=model, compute_metrics=kept).evaluate()
    trainer = make_trainer(models, model=model)
    Recorder(tmp_path).attach(trainer)
    with pytest.warns(UserWarning, match=r"cannot be computed in slices \(\S+ in place of \S+\)"):
        found = trainer.evaluate()
    assert found["eval_loss"] == expected["eval_loss"]
    assert read(tmp_path / SET)["prediction_ids"] == best_ids(kept, causal=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer.evaluate()  # once is enough


@pytest.mark.parametrize("kind", ["LoRA", "prompt"])
def test_adapters_of_peft(kind: str, models: Path, tmp_path: Path) -> None:
    from peft import LoraConfig, PromptTuningConfig, get_peft_model

    def adapted() -> Any:
        torch.manual_seed(1)
        settings: Any = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
        if kind == "LoRA":
            settings = LoraConfig(
                r=2,
                target_modules=["c_attn"],
                task_type="CAUSAL_LM",
                fan_in_fan_out=True,
                init_lora_weights=False,
            )
        return get_peft_model(load(models, "causal")[0], settings)

    kept = Kept()
    settings = {"label_names": ["labels"]}
    expected = make_trainer(models, model=adapted(), compute_metrics=kept, **settings).evaluate()
    if kind == "prompt":
        kept.predictions = kept.predictions[:, 3:]
    for slices in (True, False):
        trainer = make_trainer(models, model=adapted(), **settings)
        Recorder(tmp_path / str(slices), slices=slices).attach(trainer)
        found = trainer.evaluate()
        assert found["eval_loss"] == pytest.approx(expected["eval_loss"], rel=1e-6)
        rows = read(tmp_path / str(slices) / SET)
        assert rows["prediction_ids"] == best_ids(kept, causal=True)


@pytest.mark.parametrize("settings", [{"bf16_full_eval": True}, {"bf16": True}])
def test_half_precision(settings: dict[str, Any], models: Path, tmp_path: Path) -> None:
    kept = Kept()
    expected = make_trainer(models, compute_metrics=kept, **settings).evaluate()
    trainer = make_trainer(models, **settings)
    Recorder(tmp_path, ["rouge"]).attach(trainer)
    found = trainer.evaluate()
    assert found["eval_loss"] == pytest.approx(expected["eval_loss"], rel=2e-2)
    rows = read(tmp_path / SET)
    same = [
        a == b for a, b in zip(rows["prediction_ids"], best_ids(kept, causal=True), strict=True)
    ]
    assert sum(same) >= 6  # a slice may be rounded otherwise than the whole
    assert all(nll > 0 for nll in rows["nll"])


@pytest.mark.parametrize("slices", [True, False])
def test_nothing_but_ids_and_sums_leaves_the_device(
    slices: bool, models: Path, tmp_path: Path
) -> None:
    model, _ = load(models, "causal")
    model.config.output_hidden_states = True
    model.config.keys_to_ignore_at_inference = []  # the cache is among the outputs, too
    trainer = make_trainer(models, model=model)
    Recorder(tmp_path, slices=slices).attach(trainer)
    gathered: list[Any] = []
    own = trainer.gather_function

    def gather(tensors: Any) -> Any:
        gathered.append(tensors)
        return own(tensors)

    trainer.gather_function = gather
    trainer.evaluate()
    outputs = [entry for entry in gathered if isinstance(entry, tuple)]
    assert len(outputs) == 3
    for ids, facts, counts, nll in outputs:
        assert ids.dtype == torch.int64
        assert (facts.shape[1], counts.shape[1], nll.dim()) == (2, 2, 1)
    tensors = [entry for entry in gathered if not isinstance(entry, tuple)]
    assert {entry.dim() for entry in tensors} == {1, 2}  # losses and labels


def test_rows_without_labels_count_nothing(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models, rows=4, per_device_eval_batch_size=2)
    rows = trainer.eval_dataset
    masked = [
        [-100] * len(labels) if row < 3 else labels for row, labels in enumerate(rows["labels"])
    ]
    trainer.eval_dataset = rows.remove_columns("labels").add_column("labels", masked)
    Recorder(tmp_path, ["rouge"]).attach(trainer)
    trainer.evaluate()  # the first batch has no row that the loss could be checked on
    found = read(tmp_path / SET)
    assert found["label_tokens"][:3] == [0, 0, 0]
    assert found["prediction_ids"][:3] == [[], [], []]
    assert found["nll"][:3] == [0.0, 0.0, 0.0]
    assert found["references"][:3] == [[""]] * 3
    assert found["label_tokens"][3] > 0


def test_logits_are_found_behind_the_loss_of_a_router(models: Path, tmp_path: Path) -> None:
    from transformers import MixtralConfig, MixtralForCausalLM, Trainer

    class Whole(Trainer):
        """Keeps logits alone: the auxiliary loss comes before them."""

        def prediction_step(self, *arguments: Any, **options: Any) -> Any:
            loss, outputs, labels = super().prediction_step(*arguments, **options)
            return loss, outputs[1], labels

    def model() -> Any:
        torch.manual_seed(0)
        sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
        heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "num_local_experts": 2}
        config = MixtralConfig(
            vocab_size=320, num_experts_per_tok=1, output_router_logits=True, **sizes, **heads
        )
        return MixtralForCausalLM(config)

    kept = Kept()
    plain = make_trainer(models, model=model(), compute_metrics=kept)
    plain.__class__ = Whole
    expected = plain.evaluate()
    trainer = make_trainer(models, model=model())
    Recorder(tmp_path).attach(trainer)
    with pytest.warns(UserWarning, match="cannot be computed in slices"):
        assert trainer.evaluate()["eval_loss"] == expected["eval_loss"]
    assert read(tmp_path / SET)["prediction_ids"] == best_ids(kept, causal=True)
