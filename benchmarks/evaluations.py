"""``Trainer.evaluate`` for ``benchmarks.trainer``, each measurement in a process of its own.

    python -m benchmarks.evaluations memory FOLDER ROWS WAY
    python -m benchmarks.evaluations times FOLDER ROWS PAIRS
    python -m benchmarks.evaluations same FOLDER ROWS

FOLDER holds ``model`` and ``rows.json``, see ``save``. The last line that is printed is JSON.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BATCH_ROWS = 8
RECORDER = "Recorder"
# Ways to evaluate with metrics: arguments of TrainingArguments, beside a compute_metrics.
WAYS: dict[str, dict[str, Any]] = {
    "compute_metrics": {},
    "eval_accumulation_steps=1": {"eval_accumulation_steps": 1},
    "per_device_eval_batch_size=1": {"per_device_eval_batch_size": 1},
    "activation_checkpointing=True": {"activation_checkpointing": True},
    "bf16=True": {"bf16": True},
    "bf16_full_eval=True": {"bf16_full_eval": True},
    "eval_do_concat_batches=False": {"eval_do_concat_batches": False},
    RECORDER: {},
}


def save(folder: Path, rows: int, tokens: int, sizes: dict[str, int]) -> None:
    """A random GPT-2, its tokenizer of one word per id, and rows of ``tokens`` words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    # Wide weights, so that the best token is not nearly another one.
    end = sizes["vocab_size"] - 1
    config = GPT2Config(
        n_positions=tokens, initializer_range=0.1, bos_token_id=end, eos_token_id=end, **sizes
    )
    words = {f"w{number}": number for number in range(end)} | {"<end>": end}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<end>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<end>", pad_token="<end>"
    ).save_pretrained(folder / "model")
    torch.manual_seed(0)
    GPT2LMHeadModel(config).save_pretrained(folder / "model")
    generator = random.Random(0)
    ids = [[generator.randrange(end) for _ in range(tokens)] for _ in range(rows)]
    (folder / "rows.json").write_text(json.dumps(ids))


def text(ids: list[int]) -> str:
    """What the tokenizer of ``save`` makes into ``ids``."""
    return " ".join(f"w{number}" for number in ids)


class Evaluation:
    """A trainer that evaluates the first ``rows`` rows of ``folder``."""

    def __init__(self, folder: Path, rows: int, out: Path, way: str | None, model: Any) -> None:
        from datasets import Dataset
        from transformers import AutoTokenizer, Trainer, TrainingArguments

        ids = json.loads((folder / "rows.json").read_text())[:rows]
        self.tokenizer = AutoTokenizer.from_pretrained(folder / "model")
        self.seen: list[list[int]] = []
        plain = way is not None and way != RECORDER
        arguments: dict[str, Any] = {"per_device_eval_batch_size": BATCH_ROWS}
        arguments |= WAYS.get(way or "", {})
        self.trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=str(out),
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
                dataloader_pin_memory=False,
                **arguments,
            ),
            eval_dataset=Dataset.from_dict({"input_ids": ids, "labels": ids}),
            processing_class=self.tokenizer,
            compute_metrics=self.compute_metrics if plain else None,
        )
        self.recorder = None
        if way == RECORDER:
            from pipeline.training import Recorder

            self.recorder = Recorder(out / "evaluations", score=["rouge", "bleu"])
            self.recorder.attach(self.trainer)

    def compute_metrics(self, prediction: Any) -> dict[str, float]:
        """ROUGE and BLEU as they are written by hand, with their libraries."""
        from rouge_score.rouge_scorer import RougeScorer
        from sacrebleu.metrics.bleu import BLEU

        batches = prediction.predictions, prediction.label_ids
        if not isinstance(batches[0], list):
            batches = [batches[0]], [batches[1]]
        for logits, labels in zip(*batches, strict=True):
            best, wanted = logits.argmax(-1)[:, :-1], labels[:, 1:] != -100
            self.seen += [row[mask].tolist() for row, mask in zip(best, wanted, strict=True)]
        predicted = [self.tokenizer.decode(row, skip_special_tokens=True) for row in self.seen]
        references = [
            self.tokenizer.decode(row[row != -100], skip_special_tokens=True)
            for labels in batches[1]
            for row in labels
        ]
        kinds = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
        scorer = RougeScorer(kinds)
        rows = [scorer.score(*pair) for pair in zip(references, predicted, strict=True)]
        means = {kind: math.fsum(row[kind].fmeasure for row in rows) / len(rows) for kind in kinds}
        return {**means, "bleu": BLEU().corpus_score(predicted, [references]).score}


def memory(folder: Path, rows: int, way: str, out: Path) -> None:
    """Evaluate once; the memory is measured from outside."""
    Evaluation(folder, rows, out, way, _model(folder)).trainer.evaluate()


def times(folder: Path, rows: int, pairs: str, out: Path) -> dict[str, Any]:
    """Seconds without metrics and with the Recorder, in turns, with one model."""
    model = _model(folder)
    sides = [Evaluation(folder, rows, out / str(way), way, model) for way in (None, RECORDER)]
    for side in sides:
        side.trainer.evaluate()
    seconds: list[list[float]] = [[], []]
    for _ in range(int(pairs)):
        for side, taken in zip(sides, seconds, strict=True):
            start = time.perf_counter()
            side.trainer.evaluate()
            taken.append(time.perf_counter() - start)
    return {"plain": seconds[0], "recorder": seconds[1]}


def same(folder: Path, rows: int, _: str, out: Path) -> dict[str, Any]:
    """Ids and metrics of ``compute_metrics`` against those of the Recorder."""
    from pipeline.store.prediction_set import PredictionSet

    model = _model(folder)
    plain, ours = (
        Evaluation(folder, rows, out / way, way, model) for way in ("compute_metrics", RECORDER)
    )
    expected, found = plain.trainer.evaluate(), ours.trainer.evaluate()
    assert ours.recorder is not None
    recorded = PredictionSet(ours.recorder.folder("eval", 0))
    tables = [recorded.reader(chunk).read() for chunk in recorded.present()]
    ids = [row for table in tables for row in table.column("prediction_ids").to_pylist()]
    names = ("rouge1", "rouge2", "rougeL", "rougeLsum", "bleu")
    pairs = list(zip(plain.seen, ids, strict=True))
    return {
        "tokens": sum(map(len, plain.seen)),
        "other_ids": sum(one != two for pair in pairs for one, two in zip(*pair, strict=True)),
        "metrics": {name: [expected[f"eval_{name}"], found[f"eval_{name}"]] for name in names},
        "losses": [expected["eval_loss"], found["eval_loss"]],
    }


def _model(folder: Path) -> Any:
    from transformers import GPT2LMHeadModel

    return GPT2LMHeadModel.from_pretrained(folder / "model")


def main() -> None:
    task, folder, rows, *more = sys.argv[1:]
    measure = {"memory": memory, "times": times, "same": same}[task]
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory() as out:
        found = measure(Path(folder), int(rows), more[0] if more else "", Path(out))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
