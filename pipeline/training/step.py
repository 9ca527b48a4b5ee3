"""One batch: the trainer's ``prediction_step``, and what is kept of its outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.errors import ModelError
from pipeline.training.kind import Kind, base_model
from pipeline.training.loss import SlicedLoss
from pipeline.training.reduce import count_inputs, own_positions, reduce_frames, reduce_logits


class Step:
    """Runs batches of one trainer.

    Args:
        trainer: the trainer.
        kind: what its model gives.
        slices: whether logits of a whole batch are to be avoided.
    """

    def __init__(self, trainer: Any, kind: Kind, *, slices: bool) -> None:
        self._trainer = trainer
        self._kind = kind
        self._loss = SlicedLoss(trainer, kind, wanted=slices)

    def run(
        self, step: Callable[..., Any], model: Any, inputs: Any, *more: Any, **options: Any
    ) -> Any:
        """Loss, (outputs, facts of the rows) and labels of a batch.

        Outputs are ids, counts and likelihood where logits of the batch were avoided, else logits,
        or generated ids without the prompt. They are not padded to those of other ranks yet.

        Args:
            step: the trainer's own ``prediction_step``.
            model: the first of its arguments, wrapped or not.
            inputs: the second.
            more, options: the others.
        """
        stand_in = self._loss.stand_in(model, inputs)
        loss, outputs, labels = step(stand_in, inputs, *more, **options)
        if outputs is None or labels is None:
            return loss, None, None
        if isinstance(outputs, (tuple, list)) and stand_in is model:
            outputs = _logits(outputs)
        inner = self._trainer.accelerator.unwrap_model(self._trainer.model)
        if self._kind == Kind("causal", "labels") and not isinstance(outputs, tuple):
            outputs = own_positions(outputs, labels, inner)
        if self._kind.gives != "labels" and len(outputs) != len(labels):
            raise ModelError(
                f"the model gives {len(outputs)} predictions for the {len(labels)} rows of a "
                "batch; a Recorder takes one of each row: leave num_return_sequences at 1"
            )
        facts = count_inputs(inputs, outputs, labels, self._kind, base_model(inner))
        if self._kind == Kind("causal", "generated"):
            outputs = outputs[:, inputs["input_ids"].shape[1] :]
        return loss, (outputs, facts), labels

    def reduce(self, outputs: tuple[Any, Any], labels: Any) -> tuple[Any, ...]:
        """What is gathered of ``run``'s outputs and facts; see ``reduce``."""
        found, facts = outputs
        if self._kind.gives == "frames":
            return reduce_frames(found, facts)
        if self._kind.gives == "generated":
            return found, facts
        if not isinstance(found, tuple):
            found = reduce_logits(found, labels, causal=self._kind.task == "causal")
        ids, counts, nll = found
        return ids, facts, counts, nll


def _logits(outputs: Any) -> Any:
    """Logits among what a model returned: before them may stand losses, after them anything."""
    for value in outputs:
        if getattr(value, "ndim", 0) == 3:
            return value
    return outputs[0]
