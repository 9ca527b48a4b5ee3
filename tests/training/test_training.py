"""Evaluations in the middle of training: what they leave as it was, and what acts on them."""

from __future__ import annotations

import random
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import EarlyStoppingCallback, TrainerCallback

from pipeline.errors import ConfigError
from pipeline.training import EvaluateTrainSet, Recorder
from pipeline.training.sample import sample_rows
from tests.training.oracle import read
from tests.training.trainers import make_trainer

# Nine rows, two at a time: five batches an epoch.
TRAINING: dict[str, Any] = {"rows": 9, "max_steps": 4, "seed": 3}


def trained(trainer: Any) -> dict[str, torch.Tensor]:
    """The weights after training, with dropout and a shuffled loader."""
    torch.manual_seed(11)
    random.seed(11)
    np.random.seed(11)
    trainer.train()
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def equal(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(ours[name], theirs[name]) for name in theirs)


def states() -> tuple[Any, ...]:
    return (random.random(), float(np.random.random()), float(torch.rand(())))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_weights_are_those_of_a_training_without_evaluation(
    accumulate: int, models: Path, tmp_path: Path
) -> None:
    settings = {**TRAINING, "gradient_accumulation_steps": accumulate}
    plain = make_trainer(models, **settings)
    assert plain.model.config.resid_pdrop > 0
    expected = trained(plain)

    every = make_trainer(models, **settings, eval_strategy="steps", eval_steps=2)
    every.eval_dataset = {
        "validation": every.eval_dataset,
        "train": every.train_dataset.select(range(4)),
    }
    Recorder(tmp_path / "dict", ["rouge"]).attach(every)
    assert equal(trained(every), expected)
    last = {name for logs in every.state.log_history for name in logs}
    assert {"eval_validation_rougeL", "eval_train_rougeL", "eval_train_loss"} <= last
    assert len(read(tmp_path / "dict" / "eval_train" / "step-00000002")["row"]) == 4

    called = make_trainer(models, **settings, callbacks=[EvaluateTrainSet(2, batch_size=4)])
    Recorder(tmp_path / "callback", ["rouge"]).attach(called)
    called.add_callback(EvaluateTrainSet("epoch", rows=5, prefix="sample"))
    assert equal(trained(called), expected)
    assert [logs["step"] for logs in called.state.log_history if "eval_train_rougeL" in logs] == [
        2,
        4,
    ]
    assert read(tmp_path / "callback" / "eval_train" / "step-00000002")["batch_rows"] == [4] * 8 + [
        1
    ]
    ends = sorted(path.name for path in (tmp_path / "callback" / "sample").glob("step-????????"))
    assert ends == (["step-00000004"] if accumulate == 1 else ["step-00000003", "step-00000004"])


def test_an_evaluation_that_draws_numbers_would_change_the_weights(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import nullcontext

    from pipeline.training import session

    expected = trained(make_trainer(models, **TRAINING))
    monkeypatch.setattr(session, "random_state_kept", lambda device: nullcontext())
    trainer = make_trainer(models, **TRAINING, eval_strategy="steps", eval_steps=2)
    Recorder(tmp_path).attach(trainer)
    assert not equal(trained(trainer), expected)


def test_random_numbers_go_on_even_when_it_raises(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(models)
    Recorder(tmp_path).attach(trainer)
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(4)
    expected = states()
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(4)
    trainer.evaluate()
    own = trainer.model.forward

    @wraps(own)
    def fail(**inputs: Any) -> Any:
        states()
        raise RuntimeError("no")

    trainer.model.forward = fail
    with pytest.raises(RuntimeError, match="no"):
        trainer.evaluate()
    trainer.model.forward = own
    assert states() == expected


def test_early_stopping_and_the_best_checkpoint_see_the_scores(
    models: Path, tmp_path: Path
) -> None:
    trainer = make_trainer(
        models,
        rows=4,
        output_dir=str(tmp_path / "out"),
        max_steps=400,
        learning_rate=3e-2,
        lr_scheduler_type="constant",
        logging_steps=400,
        eval_strategy="steps",
        eval_steps=10,
        save_strategy="steps",
        save_steps=10,
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="rougeL",
        callbacks=[EarlyStoppingCallback(early_stopping_patience=2)],
    )
    Recorder(tmp_path / "evaluations", ["rouge"]).attach(trainer)
    trainer.train()
    curve = [logs["eval_rougeL"] for logs in trainer.state.log_history if "eval_rougeL" in logs]
    assert trainer.state.best_metric == max(curve) > 0.3
    assert len(curve) == curve.index(max(curve)) + 1 + 2
    assert trainer.state.global_step == 10 * len(curve) < 400
    again = trainer.evaluate(metric_key_prefix="best")
    assert again["best_rougeL"] == max(curve)


class Notes(TrainerCallback):
    """Hears of everything, and meddles with ``control`` when a log comes."""

    def __init__(self) -> None:
        self.evaluated: list[str] = []
        self.steps: list[tuple[bool, bool, bool]] = []

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.evaluated.append(next(name for name in others["metrics"] if name.endswith("_loss")))

    def on_prediction_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.evaluated.append("step")

    def on_log(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if "eval_train_rougeL" in others["logs"]:
            control.should_training_stop = True

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        flags = (control.should_log, control.should_evaluate, control.should_training_stop)
        self.steps.append(flags)


def test_the_callback_is_not_heard_and_takes_back_nothing(models: Path, tmp_path: Path) -> None:
    notes = Notes()
    settings = {**TRAINING, "eval_strategy": "steps", "eval_steps": 2, "logging_steps": 2}
    trainer = make_trainer(models, **settings)
    Recorder(tmp_path, ["rouge"]).attach(trainer)
    trainer.add_callback(EvaluateTrainSet(2, rows=4))
    trainer.add_callback(notes)  # after it, so that it sees what is left
    trainer.train()
    assert trainer.state.global_step == 4
    assert notes.steps[1::2] == [(True, True, False), (True, True, True)]  # the last step stops
    assert notes.evaluated.count("eval_loss") == 2
    assert set(notes.evaluated) == {"eval_loss", "step"}
    assert notes.evaluated.count("step") == 2 * 3
    history = trainer.state.log_history
    assert [logs["step"] for logs in history if "loss" in logs] == [2, 4]
    assert [logs["step"] for logs in history if "eval_rougeL" in logs] == [2, 4]
    assert [logs["step"] for logs in history if "eval_train_rougeL" in logs] == [2, 4]
    ids = read(tmp_path / "eval_train" / "step-00000002")["id"]
    assert ids == read(tmp_path / "eval_train" / "step-00000004")["id"]
    assert ids == [str(row) for row in sample_rows(trainer.train_dataset, 4, 0)[1] or ()]


def test_the_callback_restores_modes_and_settings_when_it_raises(
    models: Path, tmp_path: Path
) -> None:
    trainer = make_trainer(models, **TRAINING)
    Recorder(tmp_path, ["rouge"]).attach(trainer)
    callback = EvaluateTrainSet(1, batch_size=5)
    trainer.add_callback(callback)
    own = trainer.model.forward
    frozen = trainer.model.transformer.h[0]
    seen: list[tuple[bool, bool]] = []

    @wraps(own)  # its signature says which columns the trainer keeps
    def forward(**inputs: Any) -> Any:
        if not trainer.model.training:
            seen.append((trainer.model.training, frozen.training))
            raise MemoryError("CUDA out of memory, say")
        frozen.eval()  # by someone's wish, between two steps
        return own(**inputs)

    trainer.model.forward = forward
    with pytest.raises(MemoryError):
        trainer.train()
    assert seen == [(False, False)]
    assert trainer.model.training
    assert not frozen.training
    assert trainer.args.per_device_eval_batch_size == 3
    assert not hasattr(trainer, "_eval_dataloaders")
    assert "on_evaluate" not in vars(trainer.callback_handler)
    assert not (tmp_path / "eval_train" / "step-00000001").exists()
    trainer.model.forward = own
    assert "eval_rougeL" in trainer.evaluate()


def test_gradients_are_freed_between_steps_and_kept_in_an_accumulation(
    models: Path, tmp_path: Path
) -> None:
    trainer = make_trainer(models)
    Recorder(tmp_path).attach(trainer)
    callback = EvaluateTrainSet(1)
    trainer.add_callback(callback)
    trainer.train()
    weight = trainer.model.transformer.wte.weight
    for between, expected in ((False, True), (True, False)):
        weight.grad = torch.ones_like(weight)
        trainer.accelerator.gradient_state._set_sync_gradients(between)
        callback.on_step_end(trainer.args, trainer.state, trainer.control)
        assert (weight.grad is not None) == expected


def test_a_callback_without_a_recorder_says_so_at_the_first_step(models: Path) -> None:
    trainer = make_trainer(models, callbacks=[EvaluateTrainSet(2)])
    with pytest.raises(ConfigError, match="needs a Recorder at the same trainer"):
        trainer.train()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"every": "step"}, "every: expected 'epoch' or 1 or more, got 'step'"),
        ({"every": 0}, "every: expected 'epoch' or 1 or more, got 0"),
        ({"rows": -1}, "rows: expected None or 1 or more, got -1"),
        ({"batch_size": True}, "batch_size: expected None or 1 or more, got True"),
        ({"dataset": {"a": [1]}}, r"dataset: expected one data set, got a map of \['a'\]"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EvaluateTrainSet(**settings)


def test_kept_loaders_do_not_give_the_validation_set(models: Path, tmp_path: Path) -> None:
    trainer = make_trainer(
        models, dataloader_persistent_workers=True, dataloader_num_workers=1, max_steps=1
    )
    trainer.eval_dataset = trainer.eval_dataset.select([6, 5])
    Recorder(tmp_path).attach(trainer)
    trainer.evaluate()
    trainer.add_callback(EvaluateTrainSet(1))
    trainer.train()
    assert len(read(tmp_path / "eval_train" / "step-00000001")["row"]) == 7
    assert len(read(tmp_path / "eval" / "step-00000000")["row"]) == 2


def test_memory_is_logged_and_does_not_hold_the_evaluation(models: Path, tmp_path: Path) -> None:
    import psutil

    trainer = make_trainer(models)
    Recorder(tmp_path).attach(trainer)
    found = trainer.evaluate()
    resident = psutil.Process().memory_info().rss
    assert 0.5 * resident < found["eval_peak_memory_bytes"] < 2 * resident
    assert (
        trainer.state.log_history[-1]["eval_peak_memory_bytes"] == found["eval_peak_memory_bytes"]
    )
    assert not any("allocated" in name for name in found)  # a CPU does not count


def test_a_callback_follows_its_trainer(models: Path, tmp_path: Path) -> None:
    callback = EvaluateTrainSet(1, rows=3)
    for rows in (4, 9):
        trainer = make_trainer(models, rows=rows, max_steps=1, callbacks=[callback])
        Recorder(tmp_path / str(rows)).attach(trainer)
        trainer.train()
        found = read(tmp_path / str(rows) / "eval_train" / "step-00000001")["id"]
        assert found == [str(row) for row in sample_rows(trainer.train_dataset, 3, 0)[1] or ()]
