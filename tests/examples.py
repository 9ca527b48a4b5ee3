"""Prepared data sets for tests, written as prepare writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.schema import examples_schema


def write_examples(
    path: Path,
    texts: Sequence[str],
    references: Sequence[Sequence[str]] | None = None,
    keep: Mapping[str, Sequence[object]] | None = None,
    row_group_rows: int = 1000,
) -> Path:
    """``texts`` as the input column ``document``; the reference is the text unless given."""
    keep = keep or {}
    columns = {
        "row": pa.array(range(len(texts)), pa.int64()),
        "id": pa.array([f"id-{row}" for row in range(len(texts))], pa.string()),
        "references": pa.array(references or [[text] for text in texts], pa.list_(pa.string())),
        "document": pa.array(texts, pa.string()),
        **{name: pa.array(values) for name, values in keep.items()},
    }
    extra = [pa.field(name, column.type) for name, column in columns.items()][3:]
    schema = examples_schema(extra, ["document"], list(keep))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns, schema=schema), path, row_group_size=row_group_rows)
    return path
