"""The ``score`` section of params.yaml."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from pipeline.config import Config


class ScoreConfig(Config, frozen=True):
    """Which metrics are computed, and how.

    Attributes:
        metrics: names, or one-key maps of a name to its options.
        by: kept columns; scores are given for each combination of their values, too.
        confidence: level of the intervals, in [0, 1); 0 turns them off.
        replicates: bootstrap replicates behind each interval.
        seed: seed of the bootstrap.
        n_jobs: worker processes; 1 is this process, -1 one per core (joblib's convention). Sets
            below ``pool.WORKER_ROWS`` rows are scored in this process.
        backend: joblib backend that the workers run on.
    """

    metrics: tuple[str | dict[str, dict[str, Any] | None], ...] = ("rouge", "bleu")
    by: tuple[str, ...] = ()
    confidence: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.95
    replicates: Annotated[int, msgspec.Meta(ge=1)] = 1000
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    n_jobs: int = 1
    backend: str = "loky"
