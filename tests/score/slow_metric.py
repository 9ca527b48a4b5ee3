"""A metric that takes its time, and says in a file which process computed which rows."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import numpy as np

from pipeline.config import Config
from pipeline.score.metrics.base import Column, Floats, Metric


class Options(Config, frozen=True):
    log: str
    seconds: float = 0.0
    deadly: bool = False  # end the process


class Slow(Metric):
    options_type = Options
    columns = (Column("slow.characters", integer=True), Column("slow.rows", integer=True))
    headline = ("slow",)

    def statistics(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        with open(self.options.log, "a") as log:
            log.write(f"{os.getpid()} {len(predictions)}\n")
        time.sleep(self.options.seconds)
        if self.options.deadly:
            os._exit(1)
        return np.array([[len(text), 1.0] for text in predictions]).reshape(-1, 2)

    def scores(self, totals: Floats, per_row: bool = False) -> dict[str, float | None]:
        characters, rows = totals
        return {"slow": characters / rows if rows else None}

    def signature(self, references_per_row: str | None = None) -> str:
        return "version:1"
