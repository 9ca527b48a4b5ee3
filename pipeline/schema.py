"""Arrow schemas, column names, and the version that ties files to them.

``examples.parquet`` (made by prepare, read by predict): ``EXAMPLE_COLUMNS`` and then the input and
kept columns; which is which stands in the footer. A chunk (made by predict or ingest, read by
score): ``chunk_schema``. See docs in README, "What is in a prediction set".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

SCHEMA_VERSION = 1
METADATA_KEY = b"twophase"
# The finish reason of what ingest took in: why it ended is not known.
INGESTED = "ingested"
# Of a row that was not generated: its best token after each true one, and the end of its audio.
FORCED = "forced"
END = "end"

EXAMPLE_COLUMNS = ("row", "id", "references")

_PREDICTION_FIELDS = (
    pa.field("prediction_ids", pa.list_(pa.int32())),
    pa.field("prediction", pa.string()),
)
_CHUNK_FIELDS = (
    pa.field("row", pa.int64(), nullable=False),
    pa.field("id", pa.string(), nullable=False),
    pa.field("references", pa.list_(pa.string()), nullable=False),
    pa.field("finish_reason", pa.dictionary(pa.int32(), pa.string()), nullable=False),
    pa.field("prompt_tokens", pa.int32(), nullable=False),
    pa.field("truncated", pa.bool_(), nullable=False),
    pa.field("batch_rows", pa.int32(), nullable=False),
)
OPTIONAL_FIELDS = {
    "source": pa.field("source", pa.string()),
    "logprob": pa.field("logprob", pa.float64()),
    "nll": pa.field("nll", pa.float64()),
    "label_tokens": pa.field("label_tokens", pa.int32()),
    "correct_tokens": pa.field("correct_tokens", pa.int32()),
}

# A kept column must not hide one of ours.
RESERVED_COLUMNS = frozenset(
    field.name for field in (*_CHUNK_FIELDS, *_PREDICTION_FIELDS, *OPTIONAL_FIELDS.values())
)


def examples_schema(
    extra: Iterable[pa.Field], inputs: Sequence[str], keep: Sequence[str]
) -> pa.Schema:
    """Schema of ``examples.parquet``: row, id, references, then ``extra`` (inputs and kept)."""
    fields = [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("references", pa.list_(pa.string()), nullable=False),
        *extra,
    ]
    return with_metadata(pa.schema(fields), {"inputs": list(inputs), "keep": list(keep)})


def chunk_schema(
    *, text: bool, optional: Iterable[str] = (), keep: Iterable[pa.Field] = ()
) -> pa.Schema:
    """Schema of one chunk.

    Args:
        text: the prediction is stored as text (``prediction``) rather than token ids.
        optional: names out of ``OPTIONAL_FIELDS`` that this run writes.
        keep: fields named in ``prepare.keep``.
    """
    row, identifier, *rest = _CHUNK_FIELDS
    prediction = _PREDICTION_FIELDS[1] if text else _PREDICTION_FIELDS[0]
    chosen = [OPTIONAL_FIELDS[name] for name in optional]
    return pa.schema([row, identifier, prediction.with_nullable(False), *rest, *chosen, *keep])


def with_metadata(schema: pa.Schema, entries: dict[str, Any]) -> pa.Schema:
    """``schema`` with the schema version and ``entries`` in its footer, as canonical JSON."""
    payload = json.dumps(
        {"schema_version": SCHEMA_VERSION, **entries}, sort_keys=True, separators=(",", ":")
    )
    return schema.with_metadata({METADATA_KEY: payload.encode()})


def read_metadata(schema: pa.Schema) -> dict[str, Any] | None:
    """The entries that ``with_metadata`` wrote, or None when there are none or they are garbled."""
    raw = (schema.metadata or {}).get(METADATA_KEY)
    if raw is None:
        return None
    try:
        entries = json.loads(raw)
    except ValueError:
        return None
    return entries if isinstance(entries, dict) else None
