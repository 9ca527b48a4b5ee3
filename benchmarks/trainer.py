"""Evaluation inside the training loop: memory over rows, time, and the same metrics.

    python -m benchmarks.trainer [--quick] [--advice] [--picture docs/training-memory.svg]

Peak resident memory of whole processes, over the rows that they evaluate: 256 tokens with GPT-2's
50,257 logits for each, and a small body, since it is not the body that grows. Time and metrics are
those of a body of 6 layers of 384. ``--advice`` measures the growth under settings that are said to
help, too. Models and rows are random and made on the spot.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import (
    Check,
    machine,
    memory_picture,
    peak_rss_bytes,
    predict_command,
    report,
)
from benchmarks.evaluations import BATCH_ROWS, RECORDER, WAYS, save, text
from tests.examples import write_examples

GB, MB = 1e9, 1e6
PLAIN, ACCUMULATED, PREDICT = "compute_metrics", "eval_accumulation_steps=1", "predict"
PROMPT_TOKENS = 16
ROOT = str(Path(__file__).parents[1])


SMALL = {"n_embd": 128, "n_layer": 2, "n_head": 2, "vocab_size": 50_257}
MIDDLE = {"n_embd": 384, "n_layer": 6, "n_head": 6, "vocab_size": 50_257}
TINY = {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 8000}


class Scene:
    """A model and rows in ``place``.

    Attributes:
        counts: how many rows are evaluated; the ways that grow stop before the last.
        tokens: of each row.
    """

    def __init__(self, place: Path, sizes: dict[str, int], *, quick: bool) -> None:
        self.place = place
        self.tokens = 64 if quick else 256
        self.counts = (8, 16, 24) if quick else (16, 32, 64, 352)
        place.mkdir()
        save(place, self.counts[-1], self.tokens, TINY if quick else sizes)
        self._rows = json.loads((place / "rows.json").read_text())

    def peak(self, way: str, rows: int) -> int:
        """Peak resident bytes of an evaluation of the first ``rows`` rows."""
        command = self._predict(rows) if way == PREDICT else self._evaluation("memory", rows, way)
        peak = peak_rss_bytes(command, self.place)
        print(f"  {way}, {rows} rows: {peak / GB:.2f} GB", flush=True)
        return peak

    def times(self, rows: int, pairs: int) -> dict[str, Any]:
        return self._child("times", rows, str(pairs))

    def same(self, rows: int) -> dict[str, Any]:
        return self._child("same", rows)

    def _evaluation(self, task: str, rows: int, *more: str) -> list[str]:
        place = str(self.place)
        return [sys.executable, "-m", "benchmarks.evaluations", task, place, str(rows), *more]

    def _child(self, task: str, rows: int, *more: str) -> dict[str, Any]:
        done = subprocess.run(
            self._evaluation(task, rows, *more),
            cwd=self.place, env=os.environ | {"PYTHONPATH": ROOT}, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{task} failed: {done.stderr.strip().splitlines()[-1]}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    def _predict(self, rows: int) -> list[str]:
        prompts = [text(row[:PROMPT_TOKENS]) for row in self._rows[:rows]]
        references = [[text(row[PROMPT_TOKENS:])] for row in self._rows[:rows]]
        write_examples(self.place / "examples.parquet", prompts, references)
        settings = {
            "engine": "forced",
            "device": "cpu",
            "template": "'{document}'",
            "chat": "false",
            "max_batch_rows": BATCH_ROWS,
        }
        return [*predict_command(self.place, settings), "--overwrite"]


def growth(peaks: dict[int, int]) -> float:
    """Bytes per row between the fewest and the most rows."""
    low, high = min(peaks), max(peaks)
    return (peaks[high] - peaks[low]) / (high - low)


def memory(scene: Scene, quick: bool, picture: Path | None) -> list[Check]:
    """Peak memory over rows, four ways."""
    few, all_rows = scene.counts[:-1], scene.counts
    ways = {PLAIN: few, ACCUMULATED: few, RECORDER: all_rows, PREDICT: all_rows}
    peaks = {way: {rows: scene.peak(way, rows) for rows in counts} for way, counts in ways.items()}
    if picture is not None:
        draw(picture, scene, peaks)
    slopes = {way: growth(found) for way, found in peaks.items()}
    part = slopes[RECORDER] / slopes[PLAIN]
    judged = None if quick else part < 0.01
    name = f"growth per row, Recorder / {PLAIN}"
    return [
        *(
            Check(f"  growth per row, {way}", f"{slope / MB:.2f} MB", "", None)
            for way, slope in slopes.items()
        ),
        Check(name, f"{part:.2%}", "< 1%", judged),
    ]


def advice(scene: Scene, quick: bool) -> list[Check]:
    """The growth under each setting that is said to help, beside that without any."""
    counts = scene.counts[:2] if quick else (16, 64)
    slopes = {way: growth({rows: scene.peak(way, rows) for rows in counts}) for way in WAYS}
    return [
        Check(f"  growth per row, {way}", f"{slope / MB:.1f} MB", "", None)
        for way, slope in slopes.items()
    ]


def time(scene: Scene, quick: bool) -> list[Check]:
    """The Recorder with ROUGE and BLEU against an evaluation without metrics."""
    found = scene.times(8 if quick else 32, 3 if quick else 7)
    ratios = [ours / plain for plain, ours in zip(found["plain"], found["recorder"], strict=True)]
    middle = statistics.median(ratios)
    value = f"{middle:.2f}x ({min(ratios):.2f}-{max(ratios):.2f})"
    judged = None if quick else middle <= 1.10
    return [Check("wall time, Recorder / Trainer without metrics", value, "<= 1.10x", judged)]


def same(scene: Scene) -> list[Check]:
    """Ids, metrics and loss are those of compute_metrics; judged however small the run is."""
    found = scene.same(scene.counts[0] - 1)  # a last batch that is not full
    worst = max(abs(one - two) for one, two in found["metrics"].values())
    loss = abs(found["losses"][0] - found["losses"][1]) / found["losses"][0]
    ids = f"{found['other_ids']} of {found['tokens']}"
    return [
        Check("ids that are not the argmax of compute_metrics", ids, "0", not found["other_ids"]),
        Check("largest difference of ROUGE and BLEU", f"{worst:.1e}", "< 1e-9", worst < 1e-9),
        Check("relative difference of the loss", f"{loss:.1e}", "< 1e-5", loss < 1e-5),
    ]


def draw(path: Path, scene: Scene, peaks: dict[str, dict[int, int]]) -> None:
    """Peak memory over rows, as an SVG."""
    with memory_picture(path, (7, 4)) as axes:
        shown = {PLAIN: "Trainer, compute_metrics", ACCUMULATED: f"Trainer, {ACCUMULATED}"}
        shown |= {RECORDER: "Trainer, Recorder", PREDICT: "predict, engine forced"}
        last = scene.counts[-1]
        for place, (way, found) in enumerate(peaks.items()):
            counts = list(found)
            line = [found[rows] / GB for rows in counts]
            axes.plot(counts, line, "osD^"[place] + "-", color=f"C{place}", label=shown[way])
            if counts[-1] < last:
                end = line[-1] + growth(found) / GB * (last - counts[-1])
                style = {PLAIN: "--", ACCUMULATED: ":"}[way]
                axes.plot([counts[-1], last], [line[-1], end], style, color=f"C{place}")
        axes.set_xlabel(f"rows evaluated ({scene.tokens} tokens each); dashed: the line goes on")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="tiny; memory and time are not judged")
    parser.add_argument("--advice", action="store_true", help="settings that are said to help, too")
    parser.add_argument("--picture", type=Path, help="draw memory over rows")
    chosen = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as name:
        speed = Scene(Path(name, "speed"), MIDDLE, quick=chosen.quick)
        checks = same(speed) + time(speed, chosen.quick)
        scene = Scene(Path(name, "memory"), SMALL, quick=chosen.quick)
        checks += memory(scene, chosen.quick, chosen.picture)
        if chosen.advice:
            checks += advice(scene, chosen.quick)
    return report(checks)


if __name__ == "__main__":
    sys.exit(main())
