"""Memory of predict: flat in the rows, and teacher-forced far below ``Trainer.evaluate``.

    python -m benchmarks.memory [--quick] [--picture docs/memory.svg]

Peak resident memory of whole processes. ``Trainer`` keeps the logits of every row that it has
seen, so it is measured at 16, 32 and 64 rows and drawn beside predict at 352; what 352 would take
is the line through the three.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import (
    Check,
    has_setting,
    machine,
    memory_picture,
    peak_rss_bytes,
    predict_command,
    report,
)
from benchmarks.common import words as text_of
from tests.examples import write_examples
from tests.models import save_gpt2, save_tokenizer

GB = 1e9


def flat_in_the_rows(place: Path, quick: bool) -> list[Check]:
    """A tiny random model at 128 and at 20,000 rows."""
    save_gpt2(place / "model", pad=False)
    generator, peaks = random.Random(0), []
    for rows in (128, 512 if quick else 20_000):
        texts = [f"{row} {text_of(8, generator)}" for row in range(rows)]
        write_examples(place / "examples.parquet", texts)
        settings = {
            "device": "cpu",
            "chunk_rows": 128,
            "max_batch_rows": 64,
            "generation": "{max_new_tokens: 4}",
        }
        command = [*predict_command(place, settings), "--overwrite"]
        peaks.append(peak_rss_bytes(command, place))
        print(f"  {rows} rows: peak {peaks[-1] / GB:.3f} GB", flush=True)
    ratio = peaks[1] / peaks[0]
    judged = None if quick else 0.95 <= ratio <= 1.05
    return [Check("peak RSS at 20,000 rows / at 128 rows", f"{ratio:.3f}", "0.95-1.05", judged)]


TRAINER = """
import sys
from datasets import Dataset
from transformers import GPT2LMHeadModel, Trainer, TrainingArguments
model, rows, tokens, vocabulary = sys.argv[1], *map(int, sys.argv[2:])
ids = [[(row * 31 + place) % vocabulary for place in range(tokens)] for row in range(rows)]
dataset = Dataset.from_dict({"input_ids": ids, "labels": ids})
arguments = TrainingArguments(
    output_dir="trainer", per_device_eval_batch_size=8, report_to=[], disable_tqdm=True,
    use_cpu=True,
)
def compute_metrics(prediction):
    best = prediction.predictions.argmax(-1)[:, :-1]
    return {"accuracy": float((best == prediction.label_ids[:, 1:]).mean())}
model = GPT2LMHeadModel.from_pretrained(model)
Trainer(model=model, args=arguments, compute_metrics=compute_metrics).evaluate(dataset)
"""


def forced(place: Path, quick: bool, picture: Path | None) -> list[Check]:
    """A random GPT-2 of 124 M parameters, rows of 256 tokens."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    name = "forced: peak RSS, 352 rows x 256 tokens"
    if not has_setting("max_label_tokens"):
        return [Check(name, "no engine forced", "< 2.5 GB", None)]
    rows, tokens = (32, 64) if quick else (352, 256)
    small: dict[str, Any] = {"n_embd": 64, "n_layer": 2, "n_head": 2} if quick else {}
    save_tokenizer(place / "model")
    torch.manual_seed(0)
    config = GPT2Config(**small)
    GPT2LMHeadModel(config).save_pretrained(place / "model")
    generator = random.Random(0)
    texts = [text_of(tokens, generator) for _ in range(2 * rows)]
    write_examples(place / "examples.parquet", texts[:rows], [[text] for text in texts[rows:]])
    settings = {
        "engine": "forced",
        "device": "cpu",
        "max_prompt_tokens": 16,
        "max_label_tokens": tokens - 16,
        "max_batch_rows": 8,
    }
    ours = peak_rss_bytes(predict_command(place, settings), place)
    print(f"  forced, {rows} rows: peak {ours / GB:.2f} GB", flush=True)
    trainer = {}
    for count in (4, 8, 16) if quick else (16, 32, 64):
        numbers = [str(number) for number in (count, tokens, config.vocab_size)]
        command = [sys.executable, "-c", TRAINER, "model", *numbers]
        trainer[count] = peak_rss_bytes(command, place)
        print(f"  Trainer.evaluate, {count} rows: peak {trainer[count] / GB:.2f} GB", flush=True)
    low, *_, high = trainer
    slope = (trainer[high] - trainer[low]) / (high - low)
    expected = trainer[high] + slope * (rows - high)
    if picture is not None:
        draw(picture, rows, ours, trainer, expected)
    return [
        Check(name, f"{ours / GB:.2f} GB", "< 2.5 GB", None if quick else ours < 2.5 * GB),
        Check(f"  Trainer.evaluate, {high} rows", f"{trainer[high] / GB:.2f} GB", "", None),
        Check(f"  Trainer.evaluate, {rows} rows, by the line", f"{expected / GB:.1f} GB", "", None),
    ]


def draw(path: Path, rows: int, ours: int, trainer: dict[int, int], expected: float) -> None:
    """Peak memory over rows, as an SVG."""
    with memory_picture(path, (6, 3.6)) as axes:
        counts = list(trainer)
        axes.plot(counts, [trainer[count] / GB for count in counts], "o-", label="Trainer.evaluate")
        axes.plot(
            [counts[-1], rows], [trainer[counts[-1]] / GB, expected / GB], "--", color="C0",
            label="Trainer.evaluate, extrapolated",
        )  # fmt: skip
        axes.plot([rows], [ours / GB], "s", color="C1", label="predict, engine forced")
        axes.axhline(2.5, color="0.7", linewidth=1, label="2.5 GB, the bound for predict")
        axes.set_xlabel("rows evaluated (256 tokens each, GPT-2 124 M)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny, no verdict")
    parser.add_argument("--picture", type=Path, help="draw Trainer beside predict")
    chosen = parser.parse_args()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        checks = flat_in_the_rows(Path(first), chosen.quick)
        checks += forced(Path(second), chosen.quick, chosen.picture)
    return report(checks)


if __name__ == "__main__":
    sys.exit(main())
