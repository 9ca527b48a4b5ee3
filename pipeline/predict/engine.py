"""The one seam of phase one: what ``run`` needs of a model.

Everything that knows torch stands behind it; tests put a deterministic engine in its place that
fails at a chosen row. ``engines`` says which one a run takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from pipeline.predict.memory import DeviceMemory
from pipeline.store.card import DecodeOptions


class Prompted(Protocol):
    """One row as its engine feeds it to the model; ``run`` sees no more of it than this."""

    @property
    def length(self) -> int:
        """Positions that the row takes up in a batch, new tokens aside: what padding costs."""

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt; for audio, the model's frames."""

    @property
    def truncated(self) -> bool:
        """Something was cut to make it fit."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was predicted for one row.

    Attributes:
        ids: new tokens, up to and including the first EOS; no prompt, no padding. From ``forced``
            the best token at each label; from ``ctc`` one token a frame.
        finish_reason: ``eos``, ``stop`` (a stop string), ``length``, ``forced``, ``end`` (of the
            audio), or ``oom`` where the row did not fit the memory.
        text: the decoded text where no ``tokenizer.json`` can decode ids later, else None.
        extra: values of the engine's ``optional`` columns.
    """

    ids: list[int]
    finish_reason: str
    text: str | None = None
    extra: Mapping[str, float] = field(default_factory=dict)


class Engine(Protocol):
    """A loaded model with its tokenizer.

    Attributes:
        new_tokens: most tokens that a row may add.
        max_rows: most rows that may share a batch; None is no limit. It is 1 where a row's
            prediction would depend on the padding that others bring.
        optional: names out of ``schema.OPTIONAL_FIELDS`` that predictions carry.
        tokenizer_json: content for ``tokenizer/tokenizer.json``, or None when predictions are
            stored as text.
        decode: how ids become text in phase two.
        memory: of the device that the model runs on.
    """

    new_tokens: int
    max_rows: int | None
    optional: tuple[str, ...]
    tokenizer_json: str | None
    decode: DecodeOptions
    memory: DeviceMemory

    def prompts(self, examples: pa.Table) -> Sequence[Prompted]:
        """A chunk's rows, in order."""
        ...

    def predict(self, batch: Sequence[Any]) -> list[Prediction]:
        """Predictions for some of what ``prompts`` gave, in order."""
        ...
