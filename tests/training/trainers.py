"""Trainers with tiny random models over text that is made on the spot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainingArguments,
)

from tests.models import TEXTS, save_gpt2, save_t5, save_wav2vec2

LETTERS = "abcdefghijklmnopqrstuvwxyz "


def texts(rows: int) -> list[str]:
    """``rows`` texts of different lengths, none twice."""
    words = " ".join(TEXTS[:3]).split()
    return [" ".join(words[row % 7 : row % 7 + 2 + row % 5]) + f" {row}" for row in range(rows)]


def causal_rows(tokenizer: Any, rows: int, *, column: str | None = None) -> Dataset:
    """Prompts and continuations; the prompt is masked in the labels."""
    data: dict[str, list[Any]] = {"input_ids": [], "attention_mask": [], "labels": []}
    for row, text in enumerate(texts(rows)):
        prompt, answer = tokenizer(f"row {row}:")["input_ids"], tokenizer(text)["input_ids"]
        data["input_ids"].append(prompt + answer)
        data["attention_mask"].append([1] * len(prompt + answer))
        data["labels"].append([-100] * len(prompt) + answer)
    if column is not None:
        data[column] = [f"name-{row}" for row in range(rows)]
    return Dataset.from_dict(data)


def seq2seq_rows(tokenizer: Any, rows: int) -> Dataset:
    data: dict[str, list[Any]] = {"input_ids": [], "attention_mask": [], "labels": []}
    for row, text in enumerate(texts(rows)):
        prompt = tokenizer(f"row {row}: {text}")["input_ids"]
        data["input_ids"].append(prompt)
        data["attention_mask"].append([1] * len(prompt))
        data["labels"].append([*tokenizer(text)["input_ids"], tokenizer.eos_token_id])
    return Dataset.from_dict(data)


def speech_rows(tokenizer: Any, rows: int) -> Dataset:
    random = np.random.RandomState(0)
    data: dict[str, list[Any]] = {"input_values": [], "labels": []}
    for row, text in enumerate(texts(rows)):
        spoken = "".join(letter for letter in text if letter in LETTERS).strip()
        data["input_values"].append(random.standard_normal(2400 + 97 * row).astype(np.float32))
        data["labels"].append(tokenizer(spoken)["input_ids"])
    return Dataset.from_dict(data)


class Collator:
    """Pads labels with −100, and audio with zeros and a mask.

    Args:
        width: tokens that every row is padded to; None is the longest of the batch.
    """

    def __init__(self, tokenizer: Any, width: int | None = None) -> None:
        self._tokenizer = tokenizer
        self._width = width

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        batch: dict[str, torch.Tensor] = {}
        for name, fill in (("input_ids", 0), ("attention_mask", 0), ("labels", -100)):
            if name in rows[0]:
                values = [torch.tensor(row[name]) for row in rows]
                if self._width is not None:
                    values.append(torch.zeros(self._width, dtype=torch.int64))
                batch[name] = _padded(values, fill)[: len(rows)]
        if "input_values" in rows[0]:
            values = [torch.tensor(row["input_values"]) for row in rows]
            batch["input_values"] = _padded(values, 0)
            batch["attention_mask"] = _padded([torch.ones_like(row).long() for row in values], 0)
        return batch


def _padded(rows: list[torch.Tensor], fill: int) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=fill)


def arguments(folder: Path, kind: type[Any] = TrainingArguments, **more: Any) -> Any:
    settings: dict[str, Any] = {
        "output_dir": str(folder),
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "per_device_eval_batch_size": 3,
        "per_device_train_batch_size": 2,
        "save_strategy": "no",
        "logging_steps": 1,
        "max_steps": 4,
        "dataloader_pin_memory": False,
        **more,
    }
    return kind(**settings)


def load(folder: Path, kind: str) -> tuple[Any, Any]:
    """Model and tokenizer of a kind, made in ``folder`` where they are not there yet."""
    from transformers import (
        AutoModelForCausalLM,
        AutoModelForCTC,
        AutoModelForSeq2SeqLM,
        AutoTokenizer,
    )

    saver: dict[str, Callable[[Path], Path]] = {
        "causal": save_gpt2,
        "seq2seq": save_t5,
        "ctc": lambda place: save_wav2vec2(place, mask=True),
    }
    loader = {
        "causal": AutoModelForCausalLM,
        "seq2seq": AutoModelForSeq2SeqLM,
        "ctc": AutoModelForCTC,
    }
    place = folder / kind
    if not (place / "config.json").exists():
        saver[kind](place)
    return loader[kind].from_pretrained(place), AutoTokenizer.from_pretrained(place)


def make_rows(kind: str, tokenizer: Any, rows: int) -> Dataset:
    makers = {"causal": causal_rows, "seq2seq": seq2seq_rows, "ctc": speech_rows}
    made: Dataset = makers[kind](tokenizer, rows)
    return made


def make_trainer(
    folder: Path, kind: str = "causal", *, rows: int = 7, generate: bool = False, **more: Any
) -> Trainer:
    """A trainer of ``kind`` over ``rows`` rows, for training and for evaluation.

    Args:
        more: arguments of ``Trainer`` by their names; all others go to ``TrainingArguments``.
    """
    model, tokenizer = load(folder, kind)
    data = make_rows(kind, tokenizer, rows)
    own = {
        "model": model,
        "processing_class": tokenizer,
        "data_collator": Collator(tokenizer),
        "train_dataset": data,
        "eval_dataset": data,
    }
    names = (
        *own,
        "callbacks",
        "compute_loss_func",
        "compute_metrics",
        "preprocess_logits_for_metrics",
    )
    own |= {name: more.pop(name) for name in names if name in more}
    if generate:
        more = {"predict_with_generate": True, "generation_max_length": 12, **more}
        settings = arguments(folder / "out", Seq2SeqTrainingArguments, **more)
        return Seq2SeqTrainer(args=settings, **own)
    return Trainer(args=arguments(folder / "out", **more), **own)
