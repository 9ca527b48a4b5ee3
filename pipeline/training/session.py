"""What a Recorder puts into its trainer, as attributes of that one object.

``evaluate``          says which data set and prefix are meant, and restores random numbers after it
``evaluation_loop``   begins the set, measures memory, seals and scores, all before the trainer logs
``prediction_step``   keeps logits or generated ids, and drops whatever else the model returned
``preprocess_logits_for_metrics``, ``compute_metrics``
                      reduce a batch on the device, and write what was gathered of all ranks
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pipeline.errors import ConfigError
from pipeline.training.evaluation import Evaluation, recording, set_folder
from pipeline.training.kind import Kind
from pipeline.training.meter import MemoryMeter
from pipeline.training.ranks import from_main, most
from pipeline.training.rows import DataRows, FixedOrder, read_loader
from pipeline.training.scores import Scorer, remove_scores
from pipeline.training.spool import writing
from pipeline.training.state import attributes_kept, loaders_kept, random_state_kept
from pipeline.training.step import Step
from pipeline.training.texts import Texts

_WRAPPED = ("evaluate", "evaluation_loop", "prediction_step", "_get_eval_sampler")


class Session:
    """Records the evaluations of one trainer.

    Args:
        trainer: a trainer that ``check_trainer`` accepts.
        directory: where the sets go.
        kind: what its model gives.
        texts: its tokenizer.
        scorer: None leaves scoring to phase two.
        keep: columns of the data set that go into the set.
        slices: whether logits of a whole batch are to be avoided.

    Attributes:
        trainer: the trainer.
        numbers: of the rows of the next evaluation, where they are a sample.
    """

    def __init__(
        self,
        trainer: Any,
        directory: Path,
        kind: Kind,
        texts: Texts,
        scorer: Scorer | None,
        keep: tuple[str, ...],
        *,
        slices: bool,
    ) -> None:
        self.trainer = trainer
        self.numbers: Sequence[int] | None = None
        self._directory = directory
        self._kind = kind
        self._texts = texts
        self._scorer = scorer
        self._keep = keep
        self._step = Step(trainer, kind, slices=slices)
        self._batch_eval_metrics = trainer.args.batch_eval_metrics
        self._data: DataRows | None = None  # of the evaluation that goes on
        self._loader: Any = None
        self._read: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # loaders, and what they read
        self._evaluation: Evaluation | None = None  # on rank 0
        self._fault: Exception | None = None
        self._looped = False
        self._own = {name: getattr(trainer, name) for name in _WRAPPED}
        for name, own in self._own.items():
            setattr(trainer, name, _in_place_of(own, getattr(self, name.removeprefix("_"))))
        trainer.args.batch_eval_metrics = True
        trainer.compute_metrics = self.compute_metrics
        trainer.preprocess_logits_for_metrics = self._step.reduce

    def evaluate(self, *given: Any, **named: Any) -> dict[str, float]:
        """``Trainer.evaluate``, recorded; a subclass may take other arguments than the first."""
        trainer = self.trainer
        eval_dataset = named.get("eval_dataset", given[0] if given else None)
        dataset = trainer.eval_dataset if eval_dataset is None else eval_dataset
        evaluate = self._own["evaluate"]
        if not isinstance(dataset, dict):
            if isinstance(dataset, str):
                dataset = trainer.eval_dataset[dataset]
            with ExitStack() as stack:
                stack.enter_context(random_state_kept(trainer.args.device))
                stack.enter_context(loaders_kept(trainer.accelerator))
                data = DataRows(dataset, self._keep, self.numbers)
                stack.enter_context(attributes_kept(self, _data=data, _looped=False))
                self._forget_loader(eval_dataset if isinstance(eval_dataset, str) else "eval")
                metrics: dict[str, float] = evaluate(*given, **named)
                if not self._looped:
                    raise ConfigError(
                        f"{type(trainer).__name__}.evaluate does not go through evaluation_loop, "
                        "so nothing was recorded; call it there, or leave the Recorder out"
                    )
                return metrics
        # The trainer calls this again with each of them.
        every: dict[str, float] = evaluate(*given, **named)
        return every

    def _forget_loader(self, key: str) -> None:
        """Where workers persist, the trainer takes their loader again, whatever it reads."""
        kept = getattr(self.trainer, "_eval_dataloaders", {})
        assert self._data is not None
        if key in kept and self._read.get(kept[key]) is not self._data.source:
            del kept[key]

    def get_eval_sampler(self, eval_dataset: Any) -> Any:
        """The trainer's own; where it does not take rows as they stand, its order is noted."""
        from torch.utils.data import SequentialSampler

        sampler = self._own["_get_eval_sampler"](eval_dataset)
        if self._data is None or sampler is None or type(sampler) is SequentialSampler:
            return sampler
        return FixedOrder(list(sampler))

    def evaluation_loop(
        self,
        dataloader: Any,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: Any = None,
        metric_key_prefix: str = "eval",
    ) -> Any:
        """The trainer's loop with a set that begins before it and is sealed and scored after it.

        ``Trainer.predict`` goes through it as if nothing were attached.
        """
        trainer = self.trainer
        loop = self._own["evaluation_loop"]
        arguments = {
            "dataloader": dataloader,
            "description": description,
            "prediction_loss_only": prediction_loss_only,
            "ignore_keys": ignore_keys,
            "metric_key_prefix": metric_key_prefix,
        }
        if self._data is None or description == "Prediction":
            with (
                attributes_kept(trainer, compute_metrics=None, preprocess_logits_for_metrics=None),
                attributes_kept(trainer.args, batch_eval_metrics=self._batch_eval_metrics),
                attributes_kept(self, _data=None),
            ):
                return loop(**arguments)
        self._looped = True
        read_loader(dataloader, self._data, trainer.args.world_size)
        self._read[dataloader] = self._data.source
        with ExitStack() as stack:
            stack.enter_context(
                attributes_kept(self, _loader=dataloader, _evaluation=None, _fault=None)
            )
            from_main(trainer, lambda: self._begin(stack, metric_key_prefix))
            with MemoryMeter(trainer.args.device) as meter:
                output = loop(**arguments)
            from_main(trainer, lambda: self._seal(metric_key_prefix))
        scores = from_main(trainer, lambda: self._score(metric_key_prefix))
        found = {**scores, **most(meter.entries)}
        output.metrics.update({f"{metric_key_prefix}_{name}": found[name] for name in found})
        return output

    def _begin(self, stack: ExitStack, prefix: str) -> None:
        assert self._data is not None
        with writing(self._folder(prefix)):
            remove_scores(self._folder(prefix))
            self._evaluation = stack.enter_context(
                recording(
                    self._directory, self.trainer, self._kind, self._texts, self._data, prefix,
                    self.trainer.state.global_step,
                )
            )  # fmt: skip

    def _seal(self, prefix: str) -> None:
        if self._fault is not None:
            raise self._fault
        assert self._evaluation is not None
        with writing(self._folder(prefix)):
            self._evaluation.seal()

    def _score(self, prefix: str) -> dict[str, float]:
        return {} if self._scorer is None else self._scorer.score(self._folder(prefix))

    def _folder(self, prefix: str) -> Path:
        return set_folder(self._directory, prefix, self.trainer.state.global_step)

    def prediction_step(
        self,
        model: Any,
        inputs: dict[str, Any],
        prediction_loss_only: bool,
        *more: Any,
        **options: Any,
    ) -> Any:
        """The trainer's step; of what the model returns, what is reduced, and facts of the rows."""
        step = self._own["prediction_step"]
        if self._data is None or prediction_loss_only:
            return step(model, inputs, prediction_loss_only, *more, **options)
        return self._step.run(step, model, inputs, prediction_loss_only, *more, **options)

    def compute_metrics(self, batch: Any, compute_result: bool) -> dict[str, float]:
        """Write one gathered batch, on rank 0; the scores are computed after the last one."""
        if self._evaluation is not None and self._fault is None:
            try:
                self._evaluation.add(batch.predictions, batch.label_ids, self._last_rows())
            except Exception as error:
                # The other ranks are on their way to the next batch: they are told at the end.
                if self.trainer.args.world_size > 1:
                    self._fault = error
                else:
                    raise
        return {}

    def _last_rows(self) -> int | None:
        """In the last batch, rows that are no padding, where the loader knows."""
        state = self.trainer.accelerator.gradient_state
        if state.active_dataloader is not self._loader or not state.end_of_dataloader:
            return None
        return state.remainder if state.remainder > 0 else None


def _in_place_of(own: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """``ours`` with the name and signature of ``own``."""

    @wraps(own)
    def call(*arguments: Any, **options: Any) -> Any:
        return ours(*arguments, **options)

    return call
