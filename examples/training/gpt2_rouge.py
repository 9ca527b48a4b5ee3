"""GPT-2 with ROUGE-L while it trains, early stopping on it, and the training set beside it.

    python examples/training/gpt2_rouge.py [--out runs/gpt2]

A tiny GPT-2 learns, from nothing, to write the first lines of the standard library's docstrings.
Every 150 steps it is evaluated on 200 rows that it has not seen and on 200 that it has. What is
scored is the best token at each place of the reference (teacher-forced), which is what
``Trainer.evaluate`` has at hand. Needs the extras predict and report.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from curves import draw, values
from datasets import Dataset
from tokenizers import ByteLevelBPETokenizer
from transformers import (
    DataCollatorForSeq2Seq,
    EarlyStoppingCallback,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

from pipeline.prepare.docstrings import open_docstrings
from pipeline.training import EvaluateTrainSet, Recorder

END = "<|endoftext|>"
VALIDATION_ROWS, TRAINING_ROWS = 200, 800
EVERY_STEPS = 150  # three epochs


def summaries() -> tuple[list[str], list[str]]:
    """Ids and texts: first lines of docstrings, in an order that is as good as random."""
    (table,) = open_docstrings().iterate(["id", "summary"])
    table = table.slice(0, VALIDATION_ROWS + TRAINING_ROWS)
    return table.column("id").to_pylist(), table.column("summary").to_pylist()


def train_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(texts, vocab_size=1500, special_tokens=[END], show_progress=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, bos_token=END, eos_token=END, pad_token=END
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/gpt2"))
    out: Path = parser.parse_args().out
    set_seed(0)

    ids, texts = summaries()
    tokenizer = train_tokenizer(texts[VALIDATION_ROWS:])
    tokens = [tokenizer(f"{END}{text}{END}")["input_ids"] for text in texts]
    rows = Dataset.from_dict({"id": ids, "input_ids": tokens, "labels": tokens})
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer), n_positions=128, n_embd=96, n_layer=2, n_head=4,
            bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        )
    )  # fmt: skip

    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(out / "checkpoints"),
            num_train_epochs=40,
            learning_rate=2e-3,
            lr_scheduler_type="constant_with_warmup",
            warmup_steps=20,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=32,
            eval_strategy="steps",
            eval_steps=EVERY_STEPS,
            save_strategy="steps",
            save_steps=EVERY_STEPS,
            save_total_limit=1,
            load_best_model_at_end=True,
            metric_for_best_model="eval_rougeL",
            greater_is_better=True,
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=torch.cuda.is_available(),
        ),
        train_dataset=rows.select(range(VALIDATION_ROWS, len(rows))),
        eval_dataset=rows.select(range(VALIDATION_ROWS)),
        data_collator=DataCollatorForSeq2Seq(tokenizer),
        processing_class=tokenizer,  # decodes labels and predictions
        # Two evaluations in a row that are no better than the best by half a point of ROUGE-L.
        callbacks=[EarlyStoppingCallback(2, early_stopping_threshold=0.005)],
    )
    Recorder(out / "evaluations", score=["rouge", "bleu"]).attach(trainer)
    trainer.add_callback(EvaluateTrainSet(every=EVERY_STEPS, rows=VALIDATION_ROWS, batch_size=32))
    trainer.train()
    trainer.save_state()  # the log of all evaluations, beside the checkpoints

    history = trainer.state.log_history
    draw(history, "rougeL", "ROUGE-L (teacher-forced)", out / "rougeL.png")
    epochs, found = values(history, "eval_rougeL")
    print(f"stopped after epoch {epochs[-1]:.0f}; ROUGE-L from {found[0]:.3f} to {max(found):.3f}")
    print(f"{out / 'rougeL.png'} shows both curves, {out / 'evaluations'} holds the predictions")


if __name__ == "__main__":
    main()
