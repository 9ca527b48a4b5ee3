"""A CTC model with WER while it trains, early stopping on it, and the training set beside it.

    python examples/training/ctc_wer.py [--out runs/ctc]

A tiny Wav2Vec2 learns, from nothing, to write down sound. The texts are the first words of the
standard library's docstrings; the sound is made of them, a fixed tone per letter, in noise. After
each epoch it is evaluated on 100 rows that it has not heard and on 100 that it has. Needs the
extras predict and report.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import torch
from curves import draw, values
from datasets import Dataset
from transformers import (
    EarlyStoppingCallback,
    Trainer,
    TrainingArguments,
    Wav2Vec2Config,
    Wav2Vec2CTCTokenizer,
    Wav2Vec2FeatureExtractor,
    Wav2Vec2ForCTC,
    Wav2Vec2Processor,
    set_seed,
)

from pipeline.prepare.docstrings import open_docstrings
from pipeline.training import EvaluateTrainSet, Recorder

VALIDATION_ROWS, TRAINING_ROWS, WORDS = 100, 400, 4
RATE = 2000  # Hz
LETTER = 80  # samples: 40 ms
HERTZ = {letter: 130 + 30 * place for place, letter in enumerate(ascii_lowercase)}
NOISE = 0.5  # of a tone's amplitude


def summaries() -> list[str]:
    """The first words of docstrings, letters only."""
    (table,) = open_docstrings().iterate(["summary"])
    texts = (re.findall("[a-z]+", text.lower()) for text in table.column("summary").to_pylist())
    different = dict.fromkeys(" ".join(words[:WORDS]) for words in texts)
    return list(different)[: VALIDATION_ROWS + TRAINING_ROWS]


def sound(text: str, generator: np.random.Generator) -> np.ndarray:
    """A tone of 30 ms per letter and 10 ms of silence after it; a space is silence."""
    seconds = np.arange(LETTER) / RATE
    tones = [np.sin(2 * np.pi * HERTZ.get(letter, 0) * seconds) for letter in text]
    samples = np.stack(tones)  # (letters, LETTER)
    samples[:, LETTER * 3 // 4 :] = 0
    noise = NOISE * generator.standard_normal(samples.size)
    return (samples.ravel() + noise).astype(np.float32)


def make_processor(folder: Path) -> Wav2Vec2Processor:
    folder.mkdir(parents=True, exist_ok=True)
    letters = ["<pad>", "<unk>", "|", *ascii_lowercase]  # | stands between words
    (folder / "vocab.json").write_text(json.dumps({name: id for id, name in enumerate(letters)}))
    tokenizer = Wav2Vec2CTCTokenizer(str(folder / "vocab.json"), bos_token=None, eos_token=None)
    extractor = Wav2Vec2FeatureExtractor(sampling_rate=RATE, return_attention_mask=True)
    return Wav2Vec2Processor(extractor, tokenizer)


def make_model(processor: Wav2Vec2Processor) -> Wav2Vec2ForCTC:
    return Wav2Vec2ForCTC(
        Wav2Vec2Config(
            vocab_size=len(processor.tokenizer), pad_token_id=processor.tokenizer.pad_token_id,
            hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=128,
            conv_dim=(64,), conv_kernel=(40,), conv_stride=(40,), conv_bias=True,
            feat_extract_norm="layer", do_stable_layer_norm=True, num_conv_pos_embeddings=4,
            num_conv_pos_embedding_groups=4, apply_spec_augment=False, layerdrop=0.0,
            hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
            feat_proj_dropout=0.0, final_dropout=0.0,
            ctc_loss_reduction="mean", ctc_zero_infinity=True,
        )
    )  # fmt: skip


class Collator:
    """Rows of different lengths as a batch; labels are filled up with −100."""

    def __init__(self, processor: Wav2Vec2Processor) -> None:
        self._extractor = processor.feature_extractor

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        samples = [{"input_values": row["input_values"]} for row in rows]
        labels = [torch.tensor(row["labels"]) for row in rows]
        batch = dict(self._extractor.pad(samples, return_tensors="pt"))
        batch["labels"] = torch.nn.utils.rnn.pad_sequence(labels, True, padding_value=-100)
        return batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/ctc"))
    out: Path = parser.parse_args().out
    set_seed(0)

    processor = make_processor(out)
    texts, generator = summaries(), np.random.default_rng(0)
    rows = Dataset.from_dict(
        {
            "input_values": [sound(text, generator) for text in texts],
            "labels": [processor.tokenizer(text)["input_ids"] for text in texts],
        }
    )

    trainer = Trainer(
        model=make_model(processor),
        args=TrainingArguments(
            output_dir=str(out / "checkpoints"),
            num_train_epochs=40,
            learning_rate=2e-3,
            lr_scheduler_type="constant_with_warmup",
            warmup_steps=20,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=32,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=1,
            load_best_model_at_end=True,
            metric_for_best_model="eval_wer",
            greater_is_better=False,
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=torch.cuda.is_available(),
        ),
        train_dataset=rows.select(range(VALIDATION_ROWS, len(rows))),
        eval_dataset=rows.select(range(VALIDATION_ROWS)),
        data_collator=Collator(processor),
        processing_class=processor,  # decodes labels and frames
        callbacks=[EarlyStoppingCallback(early_stopping_patience=5)],
    )
    Recorder(out / "evaluations", score=["wer", "cer"]).attach(trainer)
    trainer.add_callback(EvaluateTrainSet(every="epoch", rows=VALIDATION_ROWS, batch_size=32))
    trainer.train()
    trainer.save_state()  # the log of all evaluations, beside the checkpoints

    history = trainer.state.log_history
    draw(history, "wer", "word error rate", out / "wer.png")
    epochs, found = values(history, "eval_wer")
    _, trained = values(history, "eval_train_wer")
    print(
        f"stopped after epoch {epochs[-1]:.0f}; WER {min(found):.3f}, on the training set", end=" "
    )
    print(f"{trained[-1]:.3f}")
    print(f"{out / 'wer.png'} shows both curves, {out / 'evaluations'} holds the predictions")


if __name__ == "__main__":
    main()
