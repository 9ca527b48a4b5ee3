"""The benchmarks run; what they hold is for a machine that is idle."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from benchmarks.checks import _texts
from benchmarks.common import peak_rss_bytes
from benchmarks.corpus import CHUNK_ROWS, EOS, Corpus
from benchmarks.evaluations import WAYS
from benchmarks.score import CHECKS, Check, _report
from pipeline.store.prediction_set import TOKENIZER_FILE, PredictionSet
from tests.project import ROOT


def _run(*arguments: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_bound_is_measured() -> None:
    lines = _run("benchmarks.score", "--quick").splitlines()
    machine, libraries, *results, _ = lines
    assert re.search(r"\d+ cores, \d+ GiB; load [\d. ]+$", machine)
    assert "sacrebleu 2" in libraries
    assert len(results) == len(CHECKS)
    for check, line in zip(CHECKS, results, strict=True):
        assert line.startswith(check.title)
        assert "not judged" in line or "not measured" in line


def test_the_profile() -> None:
    text = _run("benchmarks.score_profile", "--quick", "--markdown")
    stages = re.findall(r"^\| ([\w `]+) \| [\d.]+ \| [\d.]+ \|$", text, flags=re.MULTILINE)
    for stage in ("reading", "decoding", "rouge statistics", "bleu statistics", "weights"):
        assert stage in stages
    assert stages[-2:] == ["all stages", "`twophase score` itself"]
    docs = (ROOT / "docs/scoring-speed.md").read_text()
    shown = re.findall(r"^\| ([\w `]+) \| [\d.]+ \| [\d.]+ \|$", docs, flags=re.MULTILINE)
    assert shown == stages * 2  # sentences and documents


@pytest.mark.parametrize(
    ("unit", "bound", "value", "missed"),
    [("x", 10, 10.0, 0), ("x", 10, 9.99, 1), ("s", 1, 0.99, 0), ("s", 1, 1.0, 1)],
)
def test_verdicts(
    capsys: pytest.CaptureFixture[str], unit: str, bound: float, value: float, missed: int
) -> None:
    check = Check("name", "sentences", 20, "title", bound, unit)
    assert _report(check, 5, {"value": value, "detail": "why"}, quick=False) == missed
    assert ("MISSED" if missed else ": ok;") in capsys.readouterr().out
    assert _report(check, 5, {"value": None, "detail": "why"}, quick=False) == 0
    assert "not measured, why" in capsys.readouterr().out


def test_the_corpus_is_real_text_and_the_same_every_time(tmp_path: Path) -> None:
    corpus = Corpus("json")
    folders = [corpus.write_set(tmp_path / name, 30, 40) for name in "ab"]
    sums = [PredictionSet(folder).sums for folder in folders]
    assert sums[0] == sums[1]
    (texts,) = _texts(folders[0])
    assert len(texts.predictions) == 30
    tokenizer = Tokenizer.from_file(str(folders[0] / TOKENIZER_FILE))
    assert tokenizer.token_to_id(EOS) is not None
    for prediction, (reference,) in zip(texts.predictions, texts.references, strict=True):
        words = reference.split()
        assert len(words) == len(prediction.split()) == 40
        assert set(words) <= set(corpus.words)
        assert reference.count("\n") == 2
        kept = sum(one == other for one, other in zip(words, prediction.split(), strict=True))
        assert 10 < kept < 40  # three of ten words are replaced, more or less
    assert CHUNK_ROWS >= 30


def test_the_memory_of_a_command_is_its_own() -> None:
    held = bytearray(300_000_000)
    command = [sys.executable, "-c", "held = bytearray(100_000_000)"]
    assert 100e6 < peak_rss_bytes(command, ROOT) < len(held)
    with pytest.raises(RuntimeError, match="gone wrong"):
        peak_rss_bytes([sys.executable, "-c", "raise SystemExit('gone wrong')"], ROOT)


@pytest.mark.slow
def test_evaluation_inside_the_training_loop(tmp_path: Path) -> None:
    picture = tmp_path / "memory.svg"
    text = _run("benchmarks.trainer", "--quick", "--advice", "--picture", str(picture))
    first, *_ = text.splitlines()
    assert re.search(r"\d+ cores, \d+ GiB RAM", first)
    for line in ("growth per row, Recorder / compute_metrics", "wall time, Recorder"):
        assert re.search(rf"^{line}.*not judged$", text, flags=re.MULTILINE)
    for line in (
        "ids that are not",
        "largest difference of ROUGE",
        "relative difference of the loss",
    ):
        assert re.search(rf"^{line}.* ok$", text, flags=re.MULTILINE)
    assert picture.read_text().startswith("<?xml")
    docs = (ROOT / "docs/out-of-memory.md").read_text()
    for way in WAYS:
        assert f"| `{way}` |" in docs or way == "Recorder"
