"""Speed of predict: against ``generate`` in data-set order, and against ``Seq2SeqTrainer.predict``.

    python -m benchmarks.predict [--quick] [--model data/model]

Both sides have their model loaded, the same rows, float32, and at most 16 rows in a batch; the
pairs are interleaved, so that a machine that slows down slows both. What predict does besides
(read, hash, write, seal) is in its time.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import Check, at_least, machine, report, words
from pipeline.config import parse_section
from pipeline.fetch.config import FetchConfig
from pipeline.fetch.fetch import fetch
from pipeline.predict.config import PredictConfig
from pipeline.predict.examples import Examples
from pipeline.predict.run import load_engine, predict
from pipeline.prepare.config import PrepareConfig
from pipeline.prepare.prepare import prepare
from pipeline.store.prediction_set import PredictionSet
from tests.examples import write_examples
from tests.models import save_gpt2, save_t5, save_tokenizer
from tests.predict.fake import Silent

ROWS_PER_BATCH = 16
PROMPT = "Summarize this documentation in one short sentence.\n\n{document}"


class Side:
    """predict with an engine that is loaded once; every call is a fresh run."""

    def __init__(self, place: Path, model: Path, **settings: Any) -> None:
        self._place = place
        self._model = model
        self._config = parse_section(settings, "predict", PredictConfig)
        self._examples = place / "examples.parquet"
        self._engine = load_engine(self._config, model, Examples(self._examples))

    def run(self) -> tuple[float, list[list[int]]]:
        """Seconds, and the ids in row order."""
        out = self._place / "out"
        start = time.perf_counter()
        predict(
            self._config,
            model=self._model,
            examples=self._examples,
            predictions=out / "predictions",
            telemetry=out / "telemetry.csv",
            progress=Silent(),
            overwrite=True,
            make_engine=lambda *_: self._engine,
        )
        seconds = time.perf_counter() - start
        made = PredictionSet(out / "predictions")
        ids = [
            row
            for chunk in made.present()
            for row in made.reader(chunk).read().column("prediction_ids").to_pylist()
        ]
        return seconds, ids


def cut(ids: list[int], eos: int) -> list[int]:
    """Up to and including the first EOS."""
    return ids[: ids.index(eos) + 1] if eos in ids else ids


def against_generate(place: Path, model: Path, rows: int, pairs: int, quick: bool) -> list[Check]:
    """The default model over documents of the standard library."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # The docstrings come in the order of their hashes: that is shuffled.
    prepare(PrepareConfig(limit=rows), place / "examples.parquet", place / "source")
    new_tokens = 8 if quick else 40
    settings: dict[str, Any] = {"max_prompt_tokens": 64} if quick else {}
    ours = Side(
        place, model, template=PROMPT, chat=not quick, dtype="float32", chunk_rows=256,
        max_batch_rows=ROWS_PER_BATCH, generation={"max_new_tokens": new_tokens}, **settings,
    )  # fmt: skip
    table = Examples(place / "examples.parquet").read(0, rows)
    tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    theirs = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    prompts = [prompt.ids for prompt in ours._engine.prompts(table)]

    def in_order() -> tuple[float, list[list[int]]]:
        start, ids = time.perf_counter(), []
        with torch.inference_mode():
            for first in range(0, rows, ROWS_PER_BATCH):
                batch = tokenizer.pad(
                    {"input_ids": prompts[first : first + ROWS_PER_BATCH]}, return_tensors="pt"
                )
                made = theirs.generate(
                    **batch, max_new_tokens=new_tokens, do_sample=False,
                    pad_token_id=tokenizer.pad_token_id,
                )  # fmt: skip
                width = batch["input_ids"].shape[1]
                ids += [cut(row, tokenizer.eos_token_id) for row in made[:, width:].tolist()]
        return time.perf_counter() - start, ids

    ratios, differing = [], 0
    for _ in range(pairs):
        (their_seconds, their_ids), (our_seconds, our_ids) = in_order(), ours.run()
        ratios.append(their_seconds / our_seconds)
        differing += sum(a != b for a, b in zip(our_ids, their_ids, strict=True))
        print(
            f"  generate in order {rows / their_seconds:.2f} examples/s, "
            f"predict {rows / our_seconds:.2f}", flush=True,
        )  # fmt: skip
    return [
        at_least("predict / generate in data-set order", ratios, 1.5, judged=not quick),
        Check("  rows with other ids", str(differing), "0", differing == 0),
    ]


def against_trainer(place: Path, rows: int, pairs: int, quick: bool) -> list[Check]:
    """A random T5 of 60 M parameters over prompts of 20 to 400 tokens."""
    import torch
    from datasets import Dataset
    from transformers import (
        AutoTokenizer,
        DataCollatorForSeq2Seq,
        Seq2SeqTrainer,
        Seq2SeqTrainingArguments,
        T5Config,
        T5ForConditionalGeneration,
    )

    model, new_tokens = place / "t5", 4 if quick else 20
    if quick:
        save_t5(model)
    else:
        tokenizer = save_tokenizer(model)
        torch.manual_seed(0)
        config = T5Config(  # the sizes of t5-small
            vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8,
            pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=tokenizer.pad_token_id,
        )  # fmt: skip
        T5ForConditionalGeneration(config).save_pretrained(model)
    tokenizer = AutoTokenizer.from_pretrained(model)
    generator, texts = random.Random(0), []
    for _ in range(rows):
        ids = tokenizer(words(400, generator))["input_ids"]
        texts.append(tokenizer.decode(ids[: generator.randint(20, 400)]))
    write_examples(place / "examples.parquet", texts)
    # Random weights may not end a row; both sides generate so many tokens.
    generation = {"max_new_tokens": new_tokens, "min_new_tokens": new_tokens}
    ours = Side(
        place, model, engine="seq2seq", template="{document}", chunk_rows=256,
        max_batch_rows=ROWS_PER_BATCH, generation=generation,
    )  # fmt: skip
    loaded = T5ForConditionalGeneration.from_pretrained(model)
    loaded.generation_config.update(**generation)
    arguments = Seq2SeqTrainingArguments(
        output_dir=str(place / "trainer"), per_device_eval_batch_size=ROWS_PER_BATCH,
        predict_with_generate=True, report_to=[], disable_tqdm=True,
    )  # fmt: skip
    trainer = Seq2SeqTrainer(
        model=loaded, args=arguments, processing_class=tokenizer,
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=loaded),
    )  # fmt: skip
    inputs = tokenizer(texts)["input_ids"]
    labels = [[tokenizer.eos_token_id]] * rows
    dataset = Dataset.from_dict({"input_ids": inputs, "labels": labels})
    ratios = []
    for _ in range(pairs):
        start = time.perf_counter()
        trainer.predict(dataset)
        their_seconds = time.perf_counter() - start
        our_seconds, _ = ours.run()
        ratios.append(their_seconds / our_seconds)
        print(
            f"  Seq2SeqTrainer.predict {rows / their_seconds:.2f} examples/s, "
            f"predict {rows / our_seconds:.2f}", flush=True,
        )  # fmt: skip
    return [at_least("predict / Seq2SeqTrainer.predict", ratios, 1.3, judged=not quick)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny models, one pair, no verdict")
    parser.add_argument("--model", type=Path, default=Path("data/model"))
    chosen = parser.parse_args()
    rows, pairs = (24, 1) if chosen.quick else (256, 5)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        model = chosen.model
        if chosen.quick:
            model = save_gpt2(place / "gpt2", pad=False)
        elif not model.is_dir():
            fetch(FetchConfig(), model, announce=print)
        (place / "first").mkdir()
        (place / "second").mkdir()
        checks = against_generate(place / "first", model, rows, pairs, chosen.quick)
        checks += against_trainer(place / "second", rows, pairs, chosen.quick)
    return report(checks)


if __name__ == "__main__":
    sys.exit(main())
