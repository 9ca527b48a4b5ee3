"""``EvaluateTrainSet``: the training set evaluated beside the validation set, without its traps.

A callback that calls ``trainer.evaluate(train_set)`` by itself runs into all of these: it evaluates
with the batch size of the validation set while optimizer state and cache fill the device; it fires
``on_evaluate``, so early stopping counts it, and so it may call itself; the log that comes of it
takes back the ``should_log`` and ``should_evaluate`` that the trainer was about to act on; it
leaves the model in eval mode and the random numbers elsewhere.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from transformers import TrainerCallback

from pipeline.errors import ConfigError
from pipeline.predict.memory import DeviceMemory
from pipeline.training.sample import sample_rows
from pipeline.training.state import attributes_kept, modes_kept

if TYPE_CHECKING:
    from pipeline.training.recorder import Recorder


class EvaluateTrainSet(TrainerCallback):  # type: ignore[misc]  # transformers ships no types here
    """Evaluates the training set every so often, recorded like any other evaluation.

    Needs a ``Recorder`` that is attached to the same trainer.

    Args:
        every: ``epoch``, or a number of steps.
        rows: how many, the same ones each time; None is all. Of a stream, the first.
        batch_size: rows per device; None is the trainer's ``per_device_eval_batch_size``.
        dataset: what is evaluated, no map; None is the trainer's training set.
        prefix: of the metrics, and name of the sets' folder.
        seed: which rows are taken.

    Raises:
        ConfigError: a value that makes no sense.
    """

    def __init__(
        self,
        every: Literal["epoch"] | int = "epoch",
        rows: int | None = None,
        batch_size: int | None = None,
        dataset: Any = None,
        prefix: str = "eval_train",
        seed: int = 0,
    ) -> None:
        for name, value in (("every", every), ("rows", rows), ("batch_size", batch_size)):
            if value is None or (name == "every" and value == "epoch"):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                expected = "'epoch' or 1 or more" if name == "every" else "None or 1 or more"
                raise ConfigError(f"EvaluateTrainSet: {name}: expected {expected}, got {value!r}")
        if isinstance(dataset, dict):
            raise ConfigError(
                f"EvaluateTrainSet: dataset: expected one data set, got a map of {list(dataset)}; "
                "add a callback for each, with a prefix of its own"
            )
        self._every = every
        self._rows = rows
        self._batch_size = batch_size
        self._dataset = dataset
        self._prefix = prefix
        self._seed = seed
        self._sample: tuple[Any, list[int] | None] | None = None
        self._recorder: Recorder | None = None
        self._trainer: Any = None

    def introduce(self, recorder: Recorder, trainer: Any) -> None:
        """Say whose training set it is, as a training begins."""
        self._recorder, self._trainer = recorder, trainer
        self._sample = None

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Find out at once that no Recorder is there."""
        self._known()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Evaluate, where it is time."""
        if self._every != "epoch" and state.global_step % self._every == 0:
            self._evaluate(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Evaluate, where it is time."""
        if self._every == "epoch":
            self._evaluate(control)

    def _known(self) -> Recorder:
        if self._recorder is None:
            raise ConfigError(
                "EvaluateTrainSet needs a Recorder at the same trainer: "
                "Recorder('evaluations', score=[…]).attach(trainer) before training begins"
            )
        return self._recorder

    def _evaluate(self, control: Any) -> None:
        recorder, trainer = self._known(), self._trainer
        if self._sample is None:
            dataset = trainer.train_dataset if self._dataset is None else self._dataset
            self._sample = sample_rows(dataset, self._rows, self._seed)
        dataset, numbers = self._sample
        arguments = trainer.args
        batch_size = self._batch_size or arguments.per_device_eval_batch_size
        with ExitStack() as stack:
            stack.enter_context(_control_kept(trainer, control))
            stack.enter_context(modes_kept(trainer.model))
            stack.enter_context(attributes_kept(arguments, per_device_eval_batch_size=batch_size))
            stack.enter_context(_unheard(trainer.callback_handler))
            # Kept loaders are known by one name, and would give the validation set.
            stack.enter_context(attributes_kept(trainer, _eval_dataloaders={}))
            if trainer.accelerator.sync_gradients:
                # Between two optimizer steps; in the middle of an accumulation they are needed.
                trainer.model.zero_grad(set_to_none=True)
            DeviceMemory(arguments.device).empty_cache()
            recorder.evaluate(dataset, self._prefix, numbers)


@contextmanager
def _control_kept(trainer: Any, control: Any) -> Iterator[None]:
    """Whatever a log or another callback does to it, ``control`` is as it was."""
    before, current = copy.copy(vars(control)), trainer.control
    try:
        yield
    finally:
        vars(control).update(before)
        trainer.control = current


@contextmanager
def _unheard(handler: Any) -> Iterator[None]:
    """No callback hears of the evaluation, but of its log."""

    def keep(args: Any, state: Any, control: Any, *more: Any, **others: Any) -> Any:
        return control

    with attributes_kept(
        handler,
        on_evaluate=keep,
        on_prediction_step=keep,
        eval_dataloader=handler.eval_dataloader,
    ):
        yield


class Introduction(TrainerCallback):  # type: ignore[misc]  # see above
    """Tells each ``EvaluateTrainSet`` of a trainer whose it is; callbacks are not told."""

    def __init__(self, recorder: Recorder, trainer: Any) -> None:
        self._recorder = recorder
        self._trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Before the first step."""
        for callback in self._trainer.callback_handler.callbacks:
            if isinstance(callback, EvaluateTrainSet):
                callback.introduce(self._recorder, self._trainer)
