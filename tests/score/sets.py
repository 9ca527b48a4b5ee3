"""Small prediction sets on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from tokenizers import Tokenizer

from pipeline.schema import chunk_schema
from pipeline.store.card import RUN_CARD, DecodeOptions, RunCard
from pipeline.store.chunk import chunk_name, file_sha256, write_chunk
from pipeline.store.prediction_set import SUMS, TOKENIZER_FILE, format_sums
from tests.models import EOS, train_tokenizer

PREDICTIONS = [
    "the cat sat on the mat.",
    "a dog barked",
    "",
    "naïve café — 北京",
    "1.5 and 2,000 - x",
]
REFERENCES = [
    ["the cat sat on a mat."],
    ["the dog barked", "a dog was barking", " "],
    ["nothing"],
    ["naïve café in 北京"],
    ["1.5 and 2,000-x"],
]


def write_set(
    folder: Path,
    predictions: Sequence[str | Sequence[int] | None] = PREDICTIONS,
    references: Sequence[Sequence[str | None] | None] = REFERENCES,
    *,
    chunk_rows: int = 2,
    text: bool = False,
    tokenizer: Tokenizer | None = None,
    decode: DecodeOptions | None = None,
    finish_reasons: Sequence[str | None] | None = None,
    keep: Mapping[str, Sequence[Any]] | None = None,
    ids: Sequence[str] | None = None,
    optional: Mapping[str, Sequence[Any]] | None = None,
    seal: bool = True,
) -> RunCard:
    """Write a set of ``predictions`` (ids, or texts to encode and end with EOS) to ``folder``."""
    rows, keep, optional = len(predictions), keep or {}, optional or {}
    ids = ids or [f"id-{row}" for row in range(rows)]
    card = RunCard.plan(
        inputs={"test": folder.name},
        rows=rows,
        chunk_rows=chunk_rows,
        versions={},
        prediction="text" if text else "ids",
        decode=decode,
        optional=tuple(optional),
        keep=tuple(keep),
    )
    card.write(folder)
    tokenizer = tokenizer or train_tokenizer()
    stored = predictions if text else [_ids(tokenizer, prediction) for prediction in predictions]
    reasons = finish_reasons or ["eos"] * rows
    schema = chunk_schema(text=text, optional=optional)
    # A damaged set can hold nulls.
    schema = pa.schema([field.with_nullable(True) for field in schema])
    for name, values in keep.items():
        schema = schema.append(pa.field(name, pa.array(values).type))
    for chunk in range(card.chunks):
        start, stop = card.bounds(chunk)
        columns = {
            "row": list(range(start, stop)),
            "id": ids[start:stop],
            "prediction" if text else "prediction_ids": stored[start:stop],
            "references": references[start:stop],
            "finish_reason": pa.array(reasons[start:stop], pa.string()).dictionary_encode(),
            "prompt_tokens": [1] * (stop - start),
            "truncated": [row == 0 for row in range(start, stop)],
            "batch_rows": [1] * (stop - start),
            **{name: values[start:stop] for name, values in {**optional, **keep}.items()},
        }
        table = pa.table(columns, schema=schema)
        write_chunk(folder / chunk_name(chunk), table, card, chunk)
    if not text:
        (folder / TOKENIZER_FILE).parent.mkdir()
        (folder / TOKENIZER_FILE).write_text(tokenizer.to_str(), encoding="utf-8")
    if seal:
        seal_set(folder)
    return card


def seal_set(folder: Path) -> None:
    """Write the hashes of what is there."""
    names = [RUN_CARD, TOKENIZER_FILE, *(path.name for path in folder.glob("chunk-*"))]
    sums = {name: file_sha256(folder / name) for name in names if (folder / name).exists()}
    (folder / SUMS).write_text(format_sums(sums), encoding="utf-8")


def _ids(tokenizer: Tokenizer, prediction: str | Sequence[int] | None) -> list[int] | None:
    if isinstance(prediction, str):
        return [*tokenizer.encode(prediction).ids, tokenizer.token_to_id(EOS)]
    return None if prediction is None else list(prediction)
