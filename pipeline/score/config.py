"""The ``score`` section of params.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from pipeline.config import Config
from pipeline.score.interval import MAX_REPLICATES
from pipeline.score.normalize import Step
from pipeline.store.card import DecodeOptions


class DecodeConfig(Config, frozen=True):
    """How ids become text, where the person wants it otherwise than the run card says.

    Attributes:
        skip_special_tokens: leave them out; null is as the run card says.
        clean_up_tokenization_spaces: take away spaces before punctuation; null likewise.
    """

    skip_special_tokens: bool | None = None
    clean_up_tokenization_spaces: bool | None = None

    def override(self, decode: DecodeOptions) -> DecodeOptions:
        """``decode`` with what is set here."""
        return msgspec.structs.replace(decode, **self._chosen())

    @property
    def signature(self) -> str:
        """Such as ``skip_special_tokens=no``; empty where nothing is set."""
        return "+".join(
            f"{name}={'yes' if value else 'no'}" for name, value in self._chosen().items()
        )

    def _chosen(self) -> dict[str, bool]:
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value is not None}


class ScoreConfig(Config, frozen=True):
    """Which metrics are computed, and how.

    Attributes:
        metrics: names, or one-key maps of a name to its options.
        normalize: steps that every prediction and reference goes through, in this order: strip,
            lowercase, nfkc, or {regex: [pattern, replacement]}.
        decode: how ids become text, where the run card shall not decide it.
        by: kept columns; scores are given for each combination of their values, too.
        confidence: level of the intervals, in [0, 1); 0 turns them off.
        replicates: bootstrap replicates behind each interval.
        seed: seed of the bootstrap.
        n_jobs: worker processes; 1 is this process, -1 one per core (joblib's convention). Sets
            below ``pool.WORKER_ROWS`` rows are scored in this process. ``dask`` takes all workers
            of the cluster, whatever stands here.
        backend: joblib backend that the workers run on: ``loky`` (processes), ``threading`` or
            ``dask`` (a cluster). Its ``multiprocessing`` is not offered: it waits for ever for a
            worker that was killed.
        scheduler: address of the scheduler of ``dask``; other backends do not look at it.
    """

    metrics: tuple[str | dict[str, dict[str, Any] | str | None], ...] = ("rouge", "bleu")
    normalize: tuple[Step, ...] = ()
    decode: DecodeConfig = DecodeConfig()
    by: tuple[str, ...] = ()
    confidence: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.95
    replicates: Annotated[int, msgspec.Meta(ge=1, le=MAX_REPLICATES)] = 1000
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    n_jobs: int = 1
    backend: Literal["loky", "threading", "dask"] = "loky"
    scheduler: str | None = None
