"""A trainer as anyone writes it: ``compute_metrics`` over all that was kept, by other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import sacrebleu
from rouge_score import rouge_scorer
from transformers import Trainer

from pipeline.store.prediction_set import PredictionSet


class Kept:
    """A ``compute_metrics`` that keeps logits (or ids) and labels of the whole evaluation."""

    def __init__(self) -> None:
        self.predictions: Any = None
        self.labels: Any = None

    def __call__(self, batch: Any) -> dict[str, float]:
        kept = batch.predictions
        self.predictions = kept[0] if isinstance(kept, tuple) else kept
        self.labels = batch.label_ids
        return {}


def best_ids(kept: Kept, *, causal: bool) -> list[list[int]]:
    """The best token at each label that is not −100."""
    ids, labels = kept.predictions.argmax(-1), kept.labels
    if causal:
        ids, labels = ids[:, :-1], labels[:, 1:]
    return [row[mask].tolist() for row, mask in zip(ids, labels != -100, strict=True)]


def label_texts(trainer: Trainer, labels: np.ndarray[Any, Any], **options: Any) -> list[str]:
    """What the usual recipe makes of labels: −100 becomes padding, which is then skipped."""
    tokenizer: Any = trainer.processing_class
    filled = np.where(labels == -100, tokenizer.pad_token_id, labels)
    texts: list[str] = tokenizer.batch_decode(filled, **{"skip_special_tokens": True, **options})
    return texts


def rouge_l(predictions: list[str], references: list[str]) -> float:
    scorer = rouge_scorer.RougeScorer(["rougeL"])
    pairs = zip(references, predictions, strict=True)
    return float(np.mean([scorer.score(*pair)["rougeL"].fmeasure for pair in pairs]))


def bleu(predictions: list[str], references: list[str]) -> float:
    return float(sacrebleu.corpus_bleu(predictions, [references]).score)


def wer(predictions: list[str], references: list[str]) -> float:
    return float(jiwer.wer(references, predictions))


def read(folder: Path) -> dict[str, list[Any]]:
    """Columns of a sealed set, all chunks together."""
    source = PredictionSet(folder)
    assert source.sealed
    source.require_complete()
    rows = [row for chunk in source.present() for row in source.reader(chunk).read().to_pylist()]
    return {name: [row[name] for row in rows] for name in rows[0]}
