"""Two ranks with gloo: the sets and the metrics are those of one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.predict.test_ranks import free_port
from tests.training.gloo import KINDS, ROWS
from tests.training.gloo import evaluate as evaluate_alone
from tests.training.oracle import read
from tests.training.trainers import load

EXACT = ("row", "id", "references", "finish_reason", "prompt_tokens", "label_tokens")


@pytest.fixture(scope="module")
def alone(models: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Where one process wrote, and its metrics."""
    out = tmp_path_factory.mktemp("alone")
    return out, evaluate_alone(models, out)


@pytest.fixture(scope="module")
def ranks(
    models: Path, tmp_path_factory: pytest.TempPathFactory, alone: tuple[Path, Any]
) -> tuple[Path, list[dict[str, Any]]]:
    """Where two ranks wrote, and what each of them found."""
    out = tmp_path_factory.mktemp("ranks")
    for _, kind, _, _ in KINDS:
        load(models, kind)  # not by both ranks at once
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
        *("--master-port", str(free_port()), "-m", "tests.training.gloo", str(models), str(out)),
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=500, env=os.environ)
    assert run.returncode == 0, run.stderr[-4000:]
    return out, [json.loads((out / f"rank-{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.parametrize(
    ("name", "prefix"),
    [*((name, "eval") for name, *_ in KINDS), ("labels", "stream"), ("generated", "stream")],
)
def test_the_set_of_two_ranks_is_that_of_one_process(
    name: str, prefix: str, alone: tuple[Path, Any], ranks: tuple[Path, Any]
) -> None:
    ours = read(ranks[0] / name / prefix / "step-00000000")
    theirs = read(alone[0] / name / prefix / "step-00000000")
    assert ours.keys() == theirs.keys()
    assert ours["row"] == list(range(ROWS))
    for column in (*EXACT, *(set(ours) & {"prediction", "prediction_ids"})):
        if column in ours:
            assert ours[column] == theirs[column], column
    if "nll" in ours:
        assert ours["nll"] == pytest.approx(theirs["nll"], rel=1e-5)
    assert set(ours["batch_rows"]) == {2}


def test_every_rank_returns_the_same_metrics(
    alone: tuple[Path, Any], ranks: tuple[Path, Any]
) -> None:
    first, second = (found["metrics"] for found in ranks[1])
    for name, metrics in alone[1].items():
        prefix = "stream" if name.endswith("stream") else "eval"
        timed = (f"{prefix}_runtime", "per_second", "preparation_time")
        for key in metrics:
            if not key.endswith(timed):
                assert first[name][key] == second[name][key], key
        for key in ("rougeL", "bleu", "wer"):
            if f"{prefix}_{key}" in metrics:
                assert first[name][f"{prefix}_{key}"] == metrics[f"{prefix}_{key}"]


def test_ranks_stop_early_together(ranks: tuple[Path, Any]) -> None:
    first, second = (found["training"] for found in ranks[1])
    assert first == second
    assert first["step"] == 6
    rows = read(ranks[0] / "training" / "eval_train" / "step-00000006")
    assert len(rows["row"]) == 5
    assert set(rows["batch_rows"]) == {1}


def test_a_stream_that_each_rank_reads_by_itself_is_refused(ranks: tuple[Path, Any]) -> None:
    for found in ranks[1]:
        assert "no length" in found["shared"]
        assert "dispatch_batches" in found["shared"]


def test_what_rank_0_cannot_write_every_rank_hears(ranks: tuple[Path, Any]) -> None:
    first, second = (found["failure"] for found in ranks[1])
    assert first == "PredictionSetError: the disk is full"
    assert second.startswith("RankError: rank 0 could not record this evaluation (Predic")
    assert len(read(ranks[0] / "fails" / "eval" / "step-00000000")["row"]) == ROWS
