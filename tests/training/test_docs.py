"""docs/training.md: its examples run, one after the other, and every argument stands in it."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.training import EvaluateTrainSet, Recorder
from stages.main import main
from tests.project import ROOT
from tests.training.trainers import Collator, arguments, causal_rows, load

DOCUMENT = ROOT / "docs/training.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)


def test_the_examples_run(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model, tokenizer = load(models, "causal")
    rows = causal_rows(tokenizer, 7)
    settings = arguments(tmp_path / "out", eval_strategy="steps", eval_steps=2)
    names: dict[str, Any] = {
        "model": model, "tokenizer": tokenizer, "arguments": settings, "train": rows,
        "validation": rows.select(range(3)), "collator": Collator(tokenizer),
    }  # fmt: skip
    attach, more, curve = blocks("python")
    exec(attach, names)
    logs = names["trainer"].state.log_history
    assert [entry["step"] for entry in logs if "eval_rougeL" in entry] == [2, 4]
    exec(more, names)
    assert [entry["step"] for entry in logs if "eval_train_rougeL" in entry] == []
    logs = names["trainer"].state.log_history
    assert [entry["step"] for entry in logs if "eval_train_rougeL" in entry] == [2, 4]
    exec(curve, names)
    assert [step for step, _ in names["curve"]] == [2, 4]
    (commands,) = blocks("bash")
    for line in commands.splitlines():
        command, *options = shlex.split(line)
        assert command == "twophase"
        result = CliRunner().invoke(main, options)
        assert result.exit_code == 0, result.output
    for name in ("step-00000002", "step-00000004-scores", "step-00000004-metrics.json"):
        assert (tmp_path / "evaluations" / "eval" / name).exists()
    assert (tmp_path / "evaluations" / ".tokenizers").exists()


@pytest.mark.parametrize("thing", [Recorder, EvaluateTrainSet])
def test_every_argument_is_in_the_document(thing: type[Any]) -> None:
    text = DOCUMENT.read_text()
    names = [name for name in inspect.signature(thing).parameters if name != "seed"]
    assert [name for name in names if f"`{name}`" not in text and f"{name}=" not in text] == []
