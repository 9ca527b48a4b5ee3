"""``Recorder``: evaluations of a ``transformers`` Trainer as prediction sets, scored on the way.

The trainer keeps nothing of a batch (``batch_eval_metrics``) and hands each one over, reduced to
token ids and sums per row (``reduce``). Rank 0 spools them to a set (``spool``), seals it and
scores it before the trainer logs its metrics, so that whatever looks at them (early stopping,
``metric_for_best_model``, TensorBoard) finds the scores there, on every rank the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError
from pipeline.training.callback import Introduction
from pipeline.training.evaluation import set_folder
from pipeline.training.kind import Task, check_trainer, find_kind
from pipeline.training.scores import Entry, Scorer
from pipeline.training.session import Session
from pipeline.training.state import attributes_kept
from pipeline.training.texts import Texts

_MARK = "_twophase_recorder"


class Recorder:
    """Records and scores what a trainer evaluates.

    Args:
        directory: where the sets go: ``<directory>/<prefix>/step-00000500/``.
        score: the metrics, as ``score.metrics`` in params.yaml takes them: names, or one-key maps
            of a name to its options. None leaves scoring to phase two.
        score_options: other keys of the section ``score``, such as ``normalize``; confidence
            intervals are off unless it says otherwise.
        keep: columns of the evaluated ``datasets.Dataset`` that go into the set.
        tokenizer: decodes labels, where the trainer's ``processing_class`` does not.
        task: ``causal``, ``seq2seq`` or ``ctc``, where the model's class does not tell.
        slices: False lets the model build logits of a whole batch: more memory, and the loss is
            the trainer's to the last bit.

    Raises:
        ConfigError: an unknown metric or option.
    """

    def __init__(
        self,
        directory: str | Path,
        score: Sequence[Entry] | None = None,
        *,
        score_options: Mapping[str, Any] | None = None,
        keep: Sequence[str] = (),
        tokenizer: Any = None,
        task: Task | None = None,
        slices: bool = True,
    ) -> None:
        # Where the process works may change before an evaluation.
        self.directory = Path(directory).absolute()
        self._scorer = None if score is None else Scorer(score, score_options or {})
        self._keep = tuple(keep)
        self._tokenizer = tokenizer
        self._task = task
        self._slices = slices
        self._session: Session | None = None

    def attach(self, trainer: Any) -> Any:
        """Record every evaluation of ``trainer`` from now on.

        Args:
            trainer: a ``Trainer`` or ``Seq2SeqTrainer``, made without ``compute_metrics``.

        Returns:
            ``trainer``.

        Raises:
            ConfigError: something of it would be overwritten, or cannot be recorded.
            ModelError: its model gives no text.
        """
        if hasattr(trainer, _MARK):
            raise ConfigError(
                "this trainer has a Recorder already; a second one cannot be attached"
            )
        if self._session is not None:
            raise ConfigError(
                "this Recorder is attached to another trainer; make one for each, with a folder "
                "of its own"
            )
        check_trainer(trainer)
        kind = find_kind(trainer, self._task)
        texts = Texts(self._tokenizer or trainer.processing_class, kind)
        if self._scorer is not None:
            self._scorer.check(kind)
        self._session = Session(
            trainer, self.directory, kind, texts, self._scorer, self._keep, slices=self._slices
        )
        trainer.add_callback(Introduction(self, trainer))
        setattr(trainer, _MARK, self)
        return trainer

    def evaluate(
        self, dataset: Any, prefix: str, numbers: Sequence[int] | None = None
    ) -> dict[str, float]:
        """Let the trainer evaluate ``dataset`` under ``prefix``.

        Args:
            dataset: what ``Trainer.evaluate`` takes, no map.
            prefix: of the metrics, and name of the sets' folder.
            numbers: the number of each row, where ``dataset`` is a sample of another.

        Raises:
            ConfigError: no trainer is attached.
        """
        if self._session is None:
            raise ConfigError("this Recorder has no trainer yet: call attach(trainer) first")
        with attributes_kept(self._session, numbers=numbers):
            metrics: dict[str, float] = self._session.trainer.evaluate(
                dataset, metric_key_prefix=prefix
            )
        return metrics

    def folder(self, prefix: str, step: int) -> Path:
        """Where the set of an evaluation lies."""
        return set_folder(self.directory, prefix, step)
