"""The examples of evaluation inside the training loop, run as a person runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.store.prediction_set import PredictionSet
from tests.project import ROOT

PNG = b"\x89PNG\r\n\x1a\n"
MOST_EPOCHS = 40


def run(script: str, out: Path) -> list[dict[str, Any]]:
    """What the trainer logged."""
    command = [sys.executable, str(ROOT / "examples/training" / script), "--out", str(out)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=out.parent, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "stopped after epoch" in done.stdout
    state = json.loads((out / "checkpoints/trainer_state.json").read_text())
    history: list[dict[str, Any]] = state["log_history"]
    return history


def curve(history: list[dict[str, Any]], key: str) -> list[float]:
    return [entry[key] for entry in history if key in entry]


def check(out: Path, picture: str, history: list[dict[str, Any]], metric: str) -> None:
    """A picture, both curves, an end before the last epoch, and a set per evaluation."""
    assert (out / picture).read_bytes().startswith(PNG)
    validation = curve(history, f"eval_{metric}")
    assert len(validation) == len(curve(history, f"eval_train_{metric}"))
    assert max(entry["epoch"] for entry in history) < MOST_EPOCHS
    for prefix in ("eval", "eval_train"):
        folders = [path for path in (out / "evaluations" / prefix).glob("step-*") if path.is_dir()]
        sets = [path for path in folders if (path / "run.json").exists()]
        assert len(sets) == len(validation)
        assert PredictionSet(sets[0]).card.rows in (100, 200)
    assert all(value > 0 for value in curve(history, "eval_peak_memory_bytes"))


@pytest.mark.slow
def test_rouge_of_gpt2(tmp_path: Path) -> None:
    history = run("gpt2_rouge.py", tmp_path / "gpt2")
    check(tmp_path / "gpt2", "rougeL.png", history, "rougeL")
    validation, training = curve(history, "eval_rougeL"), curve(history, "eval_train_rougeL")
    assert max(validation[-2:]) <= max(validation[:-2]) + 0.005
    assert max(validation) > 1.2 * validation[0]
    assert training[-1] > validation[-1]  # it learns the training set by heart
    assert len(curve(history, "eval_bleu")) == len(validation)


@pytest.mark.slow
def test_wer_of_a_ctc_model(tmp_path: Path) -> None:
    history = run("ctc_wer.py", tmp_path / "ctc")
    check(tmp_path / "ctc", "wer.png", history, "wer")
    validation = curve(history, "eval_wer")
    assert min(validation[-5:]) >= min(validation[:-5])
    assert curve(history, "eval_train_wer")[0] > 0.9
    assert curve(history, "eval_train_wer")[-1] < 0.2
