"""What each rank runs in ``test_ranks``: ``python -m tests.training.gloo MODELS OUT``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import EarlyStoppingCallback
from transformers.utils import logging

from pipeline.errors import ConfigError, PredictionSetError, RankError
from pipeline.training import EvaluateTrainSet, Recorder
from pipeline.training.evaluation import Evaluation
from tests.training.trainers import Collator, make_trainer

ROWS = 7  # that two ranks with two rows each do not divide
KINDS: tuple[tuple[str, str, bool, list[Any]], ...] = (
    ("labels", "causal", False, ["rouge", "perplexity"]),
    ("generated", "seq2seq", True, ["rouge", "bleu"]),
    ("frames", "ctc", False, ["wer"]),
)


class Stream(torch.utils.data.IterableDataset[Any]):
    """Rows without a length."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __iter__(self) -> Any:
        return iter(self._rows)


def evaluate(models: Path, out: Path) -> dict[str, Any]:
    """The metrics of every kind of trainer over the same rows, as a data set and as a stream."""
    found: dict[str, Any] = {}
    for name, kind, generate, metrics in KINDS:
        trainer = make_trainer(
            models, kind, rows=ROWS, generate=generate, per_device_eval_batch_size=2
        )
        Recorder(out / name, metrics).attach(trainer)
        found[name] = trainer.evaluate()
        if name != "frames":
            # accelerate deals out a stream in batches of one width.
            trainer.data_collator = Collator(trainer.processing_class, width=40)
            stream = Stream(list(trainer.eval_dataset))
            found[f"{name}-stream"] = trainer.evaluate(stream, metric_key_prefix="stream")
    return found


def train(models: Path, out: Path) -> dict[str, Any]:
    """A training with early stopping, and a callback; what every rank logged."""
    trainer = make_trainer(
        models,
        rows=ROWS,
        output_dir=str(out / "checkpoints"),
        max_steps=40,
        eval_strategy="steps",
        eval_steps=2,
        learning_rate=0.0,  # so that nothing is ever better
        save_strategy="steps",
        save_steps=2,
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="rougeL",
        callbacks=[EarlyStoppingCallback(2), EvaluateTrainSet(2, rows=5, batch_size=1)],
    )
    Recorder(out / "training", ["rouge"]).attach(trainer)
    trainer.train()
    return {"step": trainer.state.global_step, "best": trainer.state.best_metric}


def fail(models: Path, out: Path) -> str:
    """Rank 0 cannot write; every rank hears of it, and the next evaluation works."""
    trainer = make_trainer(models, rows=ROWS, per_device_eval_batch_size=2)
    Recorder(out / "fails").attach(trainer)
    own = Evaluation.add

    def add(*arguments: Any) -> None:
        raise PredictionSetError("the disk is full")

    Evaluation.add = add  # type: ignore[method-assign]
    try:
        trainer.evaluate()
    except (PredictionSetError, RankError) as error:
        message = f"{type(error).__name__}: {error}"
    Evaluation.add = own  # type: ignore[method-assign]
    trainer.evaluate()
    return message


def share(models: Path, out: Path) -> str:
    """A stream of which each rank reads a part of its own."""
    trainer = make_trainer(
        models,
        rows=ROWS,
        per_device_eval_batch_size=2,
        accelerator_config={"dispatch_batches": False},
    )
    Recorder(out / "shared").attach(trainer)
    try:
        trainer.evaluate(Stream(list(trainer.eval_dataset)))
    except ConfigError as error:
        return str(error)
    return "recorded"


def main(models: Path, out: Path) -> None:
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    found = {
        "metrics": evaluate(models, out),
        "training": train(models, out),
        "failure": fail(models, out),
        "shared": share(models, out),
    }
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    (out / f"rank-{rank}.json").write_text(json.dumps(found))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
