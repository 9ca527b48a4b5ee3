"""What a finished set holds, counted for the line at the end of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.store.prediction_set import PredictionSet


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of rows.

    Attributes:
        rows: all.
        truncated: with a prompt of which a field was cut.
        out_of_memory: recorded empty because they did not fit.
    """

    rows: int
    truncated: int
    out_of_memory: int

    @classmethod
    def of(cls, prediction_set: PredictionSet) -> Self:
        """Count, a chunk at a time; two columns are read."""
        truncated = out_of_memory = 0
        for chunk in prediction_set.present():
            with prediction_set.local_chunk(chunk) as path:
                table = pq.ParquetFile(path).read(columns=["truncated", "finish_reason"])
            truncated += pc.sum(table.column("truncated")).as_py() or 0
            reasons = table.column("finish_reason").cast("string")
            out_of_memory += pc.sum(pc.equal(reasons, "oom")).as_py() or 0
        return cls(prediction_set.card.rows, truncated, out_of_memory)
