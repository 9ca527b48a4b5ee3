"""The checks that need a CUDA device; ``gpu_check.sh`` runs them. Ends in a table.

Models are random and made on the spot, so that nothing is downloaded. A check that raises is a row
of the table that says so, and does not keep the others from running. With ``--dry`` everything runs
tiny and on the CPU, without verdicts, to see that the script itself works.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import Check, has_setting, machine, report, words
from pipeline.config import parse_section
from pipeline.predict.config import PredictConfig
from pipeline.predict.engine import Engine
from pipeline.predict.examples import Examples
from pipeline.predict.run import load_engine, predict
from pipeline.store.prediction_set import PredictionSet
from tests.examples import write_examples
from tests.models import save_tokenizer
from tests.predict.fake import Silent

NEW_TOKENS = 64


class Scene:
    """A model and prompts of very different lengths in ``place``."""

    def __init__(self, place: Path, *, dry: bool) -> None:
        from transformers import LlamaConfig, LlamaForCausalLM

        self.place, self.dry = place, dry
        self.device = "cpu" if dry else "cuda"
        self.new_tokens = 4 if dry else NEW_TOKENS
        self.rows = 60 if dry else 800
        tokenizer = save_tokenizer(place / "model")
        torch.manual_seed(0)
        sizes = (128, 256, 2, 2) if dry else (1024, 2816, 16, 16)
        config = LlamaConfig(
            vocab_size=len(tokenizer) if dry else 32000,
            hidden_size=sizes[0],
            intermediate_size=sizes[1],
            num_hidden_layers=sizes[2],
            num_attention_heads=sizes[3],
            max_position_embeddings=4096,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
        LlamaForCausalLM(config).save_pretrained(place / "model")
        generator = random.Random(0)
        longest = 20 if dry else 400
        texts = [words(generator.randint(5, longest), generator) for _ in range(self.rows)]
        write_examples(place / "examples.parquet", texts)

    def config(self, **settings: Any) -> PredictConfig:
        # Random weights may not end a row: every row generates so many tokens.
        fixed = {"max_new_tokens": self.new_tokens, "min_new_tokens": self.new_tokens}
        defaults = {"device": self.device, "max_batch_tokens": None, "generation": fixed}
        return parse_section(defaults | settings, "predict", PredictConfig)

    def engine(self, config: PredictConfig) -> Engine:
        return load_engine(config, self.place / "model", Examples(self.place / "examples.parquet"))

    def run(self, config: PredictConfig, engine: Engine | None = None) -> Run:
        """A fresh run; the time of loading is not in it where ``engine`` is given."""
        out = self.place / "out"
        load = load_engine if engine is None else (lambda *_: engine)
        start = time.perf_counter()
        predict(
            config,
            model=self.place / "model",
            examples=self.place / "examples.parquet",
            predictions=out / "predictions",
            telemetry=out / "telemetry.csv",
            progress=Silent(),
            overwrite=True,
            make_engine=load,
        )
        return Run(out, time.perf_counter() - start)


class Run:
    """What a run left."""

    def __init__(self, out: Path, seconds: float) -> None:
        self.seconds = seconds
        made = PredictionSet(out / "predictions")
        self.ids = [
            row
            for chunk in made.present()
            for row in made.reader(chunk).read().column("prediction_ids").to_pylist()
        ]
        with (out / "telemetry.csv").open() as handle:
            self.telemetry = list(csv.DictReader(handle))

    def column(self, name: str) -> list[int]:
        return [int(line[name] or 0) for line in self.telemetry]


def synchronize(scene: Scene) -> None:
    if not scene.dry:
        torch.cuda.synchronize()


def out_of_memory(scene: Scene) -> list[Check]:
    """The allocator is held to a fraction that a full batch does not fit into."""
    settings = {"chunk_rows": 100, "max_batch_rows": 100, "rows": ":50" if scene.dry else ":200"}
    config = scene.config(**settings)
    whole = scene.run(config)
    if scene.dry:
        return [Check("out of memory: not provoked on a CPU", str(len(whole.ids)), "", None)]
    total = torch.cuda.get_device_properties(0).total_memory
    weights = min(whole.column("allocated_before_bytes"))
    # Room for the weights and a third of what the largest batch took beside them.
    room = weights + (max(whole.column("allocated_peak_bytes")) - weights) / 3
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, room / total))
    try:
        tight = scene.run(config)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    events = sum(tight.column("oom_events"))
    differing = sum(a != b for a, b in zip(whole.ids, tight.ids, strict=True))
    return [
        Check("out of memory: batches that failed", str(events), ">= 1", events >= 1),
        Check("  rows with other ids in float32", str(differing), "0", differing == 0),
        Check("  peak allocated / room", f"{max(tight.column('allocated_peak_bytes')) / room:.2f}",
              "<= 1", max(tight.column("allocated_peak_bytes")) <= room),
    ]  # fmt: skip


def flat(scene: Scene) -> list[Check]:
    """50 chunks: what stays allocated and reserved after each."""
    rows = 50 if scene.dry else 400
    run = scene.run(scene.config(chunk_rows=rows // 50, max_batch_rows=8, rows=f":{rows}"))
    checks = []
    for name in ("allocated_after_bytes", "reserved_after_bytes"):
        after = run.column(name)[2:]  # the first chunks load kernels and workspaces
        spread = (max(after) - min(after)) / max(max(after), 1)
        checks.append(
            Check(f"{name}: spread over {len(run.telemetry)} chunks", f"{spread:.2%}", "<= 1%",
                  None if scene.dry else spread <= 0.01)
        )  # fmt: skip
    return checks


def half_precision(scene: Scene) -> list[Check]:
    """bfloat16 against float32: speed, memory and how many rows differ."""
    settings = {"rows": ":50" if scene.dry else ":256", "chunk_rows": 256, "max_batch_rows": 32}
    full, half = (
        scene.run(scene.config(dtype=dtype, **settings)) for dtype in ("float32", "bfloat16")
    )
    differing = sum(a != b for a, b in zip(full.ids, half.ids, strict=True))
    peaks = [max(max(run.column("allocated_peak_bytes")), 1) for run in (half, full)]
    return [
        Check("bfloat16: every row has its tokens", str(len(half.ids)), str(len(full.ids)),
              len(half.ids) == len(full.ids)),
        Check("  peak allocated / float32", f"{peaks[0] / peaks[1]:.2f}", "<= 0.6",
              None if scene.dry else peaks[0] <= 0.6 * peaks[1]),
        Check("  rows with other ids than float32", str(differing), "", None),
    ]  # fmt: skip


def four_bit(scene: Scene) -> list[Check]:
    """4-bit weights through bitsandbytes."""
    if not has_setting("quantization"):
        return [Check("4-bit: this version has no quantization", "-", "", None)]
    settings = {"rows": ":50" if scene.dry else ":128", "chunk_rows": 128, "dtype": "bfloat16"}
    full = scene.run(scene.config(**settings))
    packed = scene.run(scene.config(quantization="4bit", **settings))
    before = [max(min(run.column("allocated_before_bytes")), 1) for run in (packed, full)]
    return [
        Check("4-bit: every row has its tokens", str(len(packed.ids)), str(len(full.ids)),
              len(packed.ids) == len(full.ids)),
        Check("  weights / bfloat16", f"{before[0] / before[1]:.2f}", "<= 0.6",
              None if scene.dry else before[0] <= 0.6 * before[1]),
    ]  # fmt: skip


def speed(scene: Scene) -> list[Check]:
    """examples/s in bfloat16: predict, generate in data-set order, continuous batching."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    rows, cap = (50, 8) if scene.dry else (512, 32)
    settings = {"rows": f":{rows}", "chunk_rows": rows, "max_batch_rows": cap, "dtype": "bfloat16"}
    config = scene.config(**settings)
    engine = scene.engine(config)
    tokenizer = AutoTokenizer.from_pretrained(scene.place / "model", padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(scene.place / "model", dtype=torch.bfloat16)
    model = model.eval().to(scene.device)
    table = Examples(scene.place / "examples.parquet").read(0, rows)
    prompts = [prompt.ids for prompt in engine.prompts(table)]  # type: ignore[attr-defined]
    fixed = {"max_new_tokens": scene.new_tokens, "min_new_tokens": scene.new_tokens}

    def in_order() -> None:
        with torch.inference_mode():
            for first in range(0, rows, cap):
                batch = tokenizer.pad(
                    {"input_ids": prompts[first : first + cap]}, return_tensors="pt"
                )
                model.generate(**batch.to(scene.device), **fixed, do_sample=False)

    def continuous() -> None:
        # It knows no min_new_tokens: without an EOS each row has as many tokens as the others.
        generation = GenerationConfig(
            max_new_tokens=scene.new_tokens, do_sample=False, eos_token_id=-1,
            pad_token_id=tokenizer.pad_token_id,
        )  # fmt: skip
        model.generate_batch(prompts, generation_config=generation)

    def timed(work: Callable[[], object]) -> float:
        best = float("inf")
        for _ in range(1 if scene.dry else 2):  # the first warms up
            synchronize(scene)
            start = time.perf_counter()
            work()
            synchronize(scene)
            best = min(best, time.perf_counter() - start)
        return best

    ours = timed(lambda: scene.run(config, engine))
    ordered = timed(in_order)
    checks = [
        Check("speed: predict, bfloat16", f"{rows / ours:.1f} examples/s", "", None),
        Check("  / generate in data-set order", f"{ordered / ours:.2f}x", ">= 1x",
              None if scene.dry else ordered >= ours),
    ]  # fmt: skip
    if not scene.dry:
        ratio = timed(continuous) / ours
        checks.append(Check("  / continuous batching", f"{ratio:.2f}x", "", None))
    return checks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry", action="store_true", help="tiny, on the CPU, without verdicts")
    chosen = parser.parse_args()
    if not chosen.dry and not torch.cuda.is_available():
        print("gpu_check needs a CUDA device; --dry runs it tiny on the CPU", file=sys.stderr)
        return 2
    print(machine(), flush=True)
    checks: list[Check] = []
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder), dry=chosen.dry)
        for check in (out_of_memory, flat, half_precision, four_bit, speed):
            start = time.perf_counter()
            try:
                checks += check(scene)
            except Exception as error:  # the other checks are worth their minutes
                said = (str(error).splitlines() or [type(error).__name__])[0]
                checks.append(Check(f"{check.__name__}: {said[:60]}", "error", "", False))
            print(f"  {check.__name__}: {time.perf_counter() - start:.0f} s", flush=True)
    return report(checks)


if __name__ == "__main__":
    sys.exit(main())
