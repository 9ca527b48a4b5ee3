"""What a trainer's model gives, and which trainers cannot be recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from pipeline.errors import ConfigError, ModelError

Task = Literal["causal", "seq2seq", "ctc"]
Gives = Literal["labels", "generated", "frames"]


@dataclass(frozen=True, slots=True)
class Kind:
    """What one evaluation of a trainer gives.

    Attributes:
        task: what the model does.
        gives: the best token at each label (``labels``), ids that were generated (``generated``),
            or the best token of each frame of audio (``frames``).
    """

    task: Task
    gives: Gives

    @property
    def optional(self) -> tuple[str, ...]:
        """Optional columns of the chunks."""
        return ("nll", "label_tokens", "correct_tokens") if self.gives == "labels" else ()


def find_kind(trainer: Any, task: Task | None) -> Kind:
    """The kind of ``trainer``.

    Args:
        trainer: a ``Trainer``.
        task: what the model does, where its class does not tell.

    Raises:
        ConfigError: an unknown task.
        ModelError: a model that gives no text.
    """
    if task is not None and task not in get_args(Task):
        raise ConfigError(f"task: expected causal, seq2seq or ctc, got {task!r}")
    task = task or _task_of(base_model(trainer.model))
    if task == "ctc":
        return Kind(task, "frames")
    return Kind(task, "generated" if generates(trainer) else "labels")


def generates(trainer: Any) -> bool:
    """Whether it is a ``Seq2SeqTrainer(predict_with_generate=True)``."""
    return bool(getattr(trainer.args, "predict_with_generate", False))


def base_model(model: Any) -> Any:
    """The model inside an adapter of PEFT, else the model."""
    inside = getattr(model, "get_base_model", None)
    return model if inside is None else inside()


def _task_of(model: Any) -> Task:
    name = type(model).__name__
    if name.endswith("ForCTC"):
        return "ctc"
    config = getattr(model, "config", None)
    can_generate = getattr(model, "can_generate", None)
    if can_generate is not None and can_generate():
        return "seq2seq" if getattr(config, "is_encoder_decoder", False) else "causal"
    raise ModelError(
        f"a {name} gives no text that its class tells of: it is neither a language model nor a "
        "CTC model; where it does give logits of tokens, say what it does with "
        "Recorder(…, task='causal'), 'seq2seq' or 'ctc'"
    )


def check_trainer(trainer: Any) -> None:
    """Refuse what cannot be recorded, and what would be overwritten.

    Raises:
        ConfigError: names the argument and the remedy.
    """
    arguments = trainer.args
    for name in ("compute_metrics", "preprocess_logits_for_metrics"):
        if getattr(trainer, name) is not None:
            raise ConfigError(
                f"this trainer has a {name} already, which the Recorder would replace; make the "
                "trainer without it, and name its metrics with Recorder(…, score=[…])"
            )
    if arguments.prediction_loss_only:
        raise ConfigError(
            "prediction_loss_only=True keeps no predictions that could be recorded; set it to False"
        )
    if arguments.eval_use_gather_object:
        raise ConfigError(
            "eval_use_gather_object=True gathers rows in another shape; set it to False: nothing "
            "but tensors of one shape is gathered here"
        )
    if len(trainer.label_names) != 1:
        raise ConfigError(
            f"the labels of this trainer are {trainer.label_names}; a Recorder takes one: set "
            "label_names=['labels'] in the training arguments"
        )
    for size in ("cp", "sp"):
        if getattr(trainer, f"get_{size}_size")() > 1:
            raise ConfigError(
                f"this trainer splits sequences over devices ({size}_size above 1), so no rank "
                "holds a row; evaluate without it"
            )
