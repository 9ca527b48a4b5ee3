"""The loss and the best tokens of a batch without logits of all of it.

``Trainer.prediction_step`` calls the model with labels, and the model builds logits of the whole
batch for its loss. Here a stand-in is called: it runs the model without labels and with its output
head over one position of each row, then the head over 256 labelled positions at a time (see
``predict.head``), and gives the loss that the model would have given: the mean of −log softmax at
the labels, or their sum over ``num_items_in_batch`` where the trainer counts them.

That this is the model's loss is not believed but checked, on one row, before it is used; a loss
with anything else in it is left to the model, with a warning.
"""

from __future__ import annotations

import warnings
from typing import Any

from pipeline.predict.finishing import FINISHING, plain
from pipeline.predict.head import first_position_only
from pipeline.predict.labels import MASKED
from pipeline.training.kind import Kind, base_model
from pipeline.training.reduce import own_positions, score_labels, shifted


class SlicedLoss:
    """Decides once for a trainer, and then stands in for its model.

    Args:
        trainer: a ``Trainer``.
        kind: what its model gives.
        wanted: False leaves the logits whole.
    """

    def __init__(self, trainer: Any, kind: Kind, *, wanted: bool) -> None:
        self._trainer = trainer
        self._causal = kind.task == "causal"
        # None is not decided yet: no row with a label was seen.
        self._usable: bool | None = None if wanted and _can_be_sliced(trainer, kind) else False

    def stand_in(self, model: Any, inputs: dict[str, Any]) -> Any:
        """What ``prediction_step`` is to call in place of ``model``.

        Every rank calls this with every batch: whether it can be used is agreed on.
        """
        if self._usable is None:
            self._usable = self._agree(self._check(inputs))
        if not self._usable or inputs.get("labels") is None:
            return model
        return _StandIn(self._trainer, model, causal=self._causal)

    def _agree(self, verdict: bool | None) -> bool | None:
        """True where it is right on every rank, False where it is wrong on one, else None."""
        import torch

        code = {True: 1, None: 0, False: -1}[verdict]
        device = self._trainer.accelerator.device
        codes = self._trainer.accelerator.gather(torch.tensor([code], device=device)).tolist()
        if -1 in codes:
            if verdict is not False:
                _warn("another rank says so")
            return False
        return True if 0 not in codes else None

    def _check(self, inputs: dict[str, Any]) -> bool | None:
        """Whether the loss of one row is the model's; None where no row has a label."""
        import torch

        inputs = self._trainer._prepare_inputs(inputs)
        labels = inputs.get("labels")
        if labels is None:
            return None
        if labels.dim() != 2:
            return False
        seen = shifted(labels) if self._causal else labels
        labelled = (seen != MASKED).any(dim=1).nonzero().flatten().tolist()
        if not labelled:
            return None
        place = slice(labelled[0], labelled[0] + 1)
        row = {
            name: value[place] if _has_rows(value, len(labels)) else value
            for name, value in inputs.items()
        }
        model = self._trainer.accelerator.unwrap_model(self._trainer.model)
        with torch.no_grad():
            try:
                found = _StandIn(self._trainer, model, causal=self._causal)(**row)["loss"]
            except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
                if isinstance(error, torch.OutOfMemoryError):
                    raise
                return _warn(f"{type(error).__name__}: {str(error).splitlines()[0]}")
            outputs = model(**row)
        expected = outputs["loss"] if isinstance(outputs, dict) else outputs[0]
        # Half precision rounds a slice otherwise than the whole.
        narrow = (
            getattr(model, "dtype", None) != torch.float32
            or self._trainer.accelerator.mixed_precision != "no"
        )
        tolerance = 2e-2 if narrow else 1e-4
        found, expected = float(found), float(expected)
        if not abs(found - expected) <= tolerance * max(1.0, abs(expected)):
            return _warn(f"{found:.6g} in place of {expected:.6g}")
        return True


def _can_be_sliced(trainer: Any, kind: Kind) -> bool:
    """Whether nothing but the model's own loss looks at logits, and the head is whole here."""
    from transformers import Seq2SeqTrainer, Trainer

    arguments = trainer.args
    own_steps = (Trainer.prediction_step, Seq2SeqTrainer.prediction_step)
    return (
        kind.task != "ctc"
        and trainer.label_names == ["labels"]
        and trainer.label_smoother is None
        and trainer.compute_loss_func is None
        and type(trainer).compute_loss is Trainer.compute_loss
        and type(trainer).prediction_step in own_steps
        and arguments.n_gpu <= 1
        and not arguments.torch_compile
        and not arguments.use_liger_kernel
        and not trainer.is_fsdp_enabled
        and not trainer.is_deepspeed_enabled
        and trainer.get_tp_size() <= 1
        and getattr(trainer.model, "get_output_embeddings", lambda: None)() is not None
        and hasattr(trainer.model, "config")
    )


def _has_rows(value: Any, rows: int) -> bool:
    return hasattr(value, "dim") and value.dim() > 0 and len(value) == rows


def _warn(why: str) -> bool:
    warnings.warn(
        f"the loss of this model cannot be computed in slices ({why}), so logits of a whole batch "
        "are built; where those do not fit into memory, lower per_device_eval_batch_size",
        stacklevel=2,
    )
    return False


class _StandIn:
    """Is called like the model, and gives its loss and ids, counts and likelihood for logits."""

    def __init__(self, trainer: Any, model: Any, *, causal: bool) -> None:
        self._accelerator = trainer.accelerator
        self._model = model
        self._inner = self._accelerator.unwrap_model(trainer.model)
        self._head = self._inner.get_output_embeddings()
        self._finish = FINISHING.get(base_model(self._inner).config.model_type, plain)
        self._causal = causal

    def __call__(
        self, *, labels: Any, num_items_in_batch: Any = None, **inputs: Any
    ) -> dict[str, Any]:
        if not self._causal and inputs.get("decoder_input_ids") is None:
            shift = base_model(self._inner).prepare_decoder_input_ids_from_labels
            inputs["decoder_input_ids"] = shift(labels=labels)
        with first_position_only(self._head) as caught:
            self._model(**inputs)
        hidden = own_positions(caught[-1], labels, self._inner)  # (batch, length, hidden size)
        if hidden.shape[:2] != labels.shape:
            raise ValueError(f"{hidden.shape[1]} positions for {labels.shape[1]} labels")
        targets = (shifted(labels) if self._causal else labels).to(hidden.device)
        flat = hidden.reshape(-1, hidden.shape[-1])
        ids, counts, nll = score_labels(lambda places: self._logits(flat[places]), targets)
        items = counts[:, 0].sum() if num_items_in_batch is None else num_items_in_batch
        loss = (nll.sum() / items).to(device=labels.device).float()
        return {"loss": loss, "logits": (ids, counts, nll)}

    def _logits(self, positions: Any) -> Any:
        """(positions, vocabulary) float32, rounded as the trainer's precision rounds."""
        with self._accelerator.autocast():
            logits = self._finish(base_model(self._inner), self._head(positions))
        return logits.float()
