"""What only a CUDA device can show of an evaluation in training; skipped without one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pipeline.training import EvaluateTrainSet, Recorder
from tests.training.trainers import make_trainer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def test_weights_memory_and_random_numbers(models: Path, tmp_path: Path) -> None:
    weights = []
    for recorded in (False, True):
        torch.manual_seed(11)
        trainer = make_trainer(models, rows=9, use_cpu=False, seed=3)
        if recorded:
            Recorder(tmp_path, ["rouge"]).attach(trainer)
            trainer.add_callback(EvaluateTrainSet(1))
        trainer.train()
        weights.append({name: value.cpu() for name, value in trainer.model.state_dict().items()})
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    entry = next(logs for logs in trainer.state.log_history if "eval_train_rougeL" in logs)
    peak, before = (
        entry[f"train_{name}_bytes"] for name in ("peak_memory", "memory_allocated_before")
    )
    assert peak > before > 0
    assert entry["train_memory_reserved_after_bytes"] > 0
