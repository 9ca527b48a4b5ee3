"""One gathered batch as columns of a chunk, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.predict.labels import MASKED
from pipeline.training.kind import Kind, base_model
from pipeline.training.texts import Texts


class BatchColumns:
    """Makes columns of what ``reduce`` left of a batch.

    Args:
        kind: what is evaluated.
        texts: the tokenizer.
        trainer: says with which ids a generated text begins and ends.
    """

    def __init__(self, kind: Kind, texts: Texts, trainer: Any) -> None:
        self._kind = kind
        self._texts = texts
        asked = _asked(trainer, "eos_token_id")
        self._ends = list(texts.end_ids(asked)) if kind.gives == "generated" else []
        starts = [_asked(trainer, name) for name in ("decoder_start_token_id", "bos_token_id")]
        found = [start for start in starts if start is not None] if kind.task == "seq2seq" else []
        self._starts = found[:1]

    def make(self, outputs: tuple[Any, ...], labels: Any, rows: int) -> dict[str, pa.Array]:
        """Columns of the first ``rows`` rows.

        Args:
            outputs: ids, facts and, with labels, counts and nll; see ``reduce``.
            labels: (batch, length) int64.
            rows: how many of them are rows of the data set; the rest is padding of the last batch.
        """
        ids, facts, *sums = (value[:rows].cpu().numpy() for value in outputs)
        references = self._texts.references(labels[:rows].cpu().numpy())
        predicted = [row[row != MASKED] for row in ids]
        reasons = ["end" if self._kind.gives == "frames" else "forced"] * rows
        if self._kind.gives == "generated":
            predicted, reasons = self._generated(predicted)
        columns = {
            "references": pa.array([[text] for text in references], pa.list_(pa.string())),
            "finish_reason": pa.array(reasons, pa.string()).dictionary_encode(),
            "prompt_tokens": pa.array(facts[:, 0].astype(np.int32)),
            "truncated": pa.array([False] * rows, pa.bool_()),
            "batch_rows": pa.array(facts[:, 1].astype(np.int32)),
        }
        written = self._texts.predictions([row.tolist() for row in predicted])
        if written is None:
            columns["prediction_ids"] = _lists(predicted)
        else:
            columns["prediction"] = pa.array(written, pa.string())
        if self._kind.gives == "labels":
            counts, nll = sums
            columns["nll"] = pa.array(nll.astype(np.float64))
            columns["label_tokens"] = pa.array(counts[:, 0].astype(np.int32))
            columns["correct_tokens"] = pa.array(counts[:, 1].astype(np.int32))
        return columns

    def _generated(self, rows: list[Any]) -> tuple[list[Any], list[str]]:
        """New ids up to and including the first that ends the text, and why each row ended.

        The trainer fills rows up; where it fills them with the id that ends a text, a text that
        was cut at the limit cannot be told from one that ended there.
        """
        kept, reasons = [], []
        for row in rows:
            if len(row) and np.isin(row[0], self._starts):
                row = row[1:]
            ends = np.isin(row, self._ends).nonzero()[0]
            if len(ends):
                row = row[: ends[0] + 1]
            else:
                filled = np.flatnonzero(row != self._texts.pad_id)
                row = row[: filled[-1] + 1 if len(filled) else 0]
            kept.append(row)
            reasons.append("eos" if len(ends) else "length")
        return kept, reasons


def _lists(rows: list[Any]) -> pa.ListArray:
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    values = np.concatenate(rows).astype(np.int32) if rows else np.zeros(0, np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


def _asked(trainer: Any, name: str) -> Any:
    """A setting of ``generate``: of this evaluation, else of the model."""
    asked = getattr(trainer, "_gen_kwargs", {})
    if asked.get(name) is not None:
        return asked[name]
    model = base_model(trainer.model)
    places = (getattr(model, place, None) for place in ("generation_config", "config"))
    for source in (asked.get("generation_config"), *places):
        if getattr(source, name, None) is not None:
            return getattr(source, name)
    return None
