"""The one seam of phase one: what ``run`` needs of a model.

Everything that knows torch stands behind it; tests put a deterministic engine in its place that
fails at a chosen row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pipeline.predict.memory import DeviceMemory
from pipeline.predict.prompt import Prompt
from pipeline.store.card import DecodeOptions


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was generated for one row.

    Attributes:
        ids: new tokens, up to and including the first EOS; no prompt, no padding.
        finish_reason: ``eos`` or ``length``.
        text: the decoded text where no ``tokenizer.json`` can decode ids later, else None.
    """

    ids: list[int]
    finish_reason: str
    text: str | None = None


class Engine(Protocol):
    """A loaded model with its tokenizer.

    Attributes:
        new_tokens: most tokens that a row may add.
        tokenizer_json: content for ``tokenizer/tokenizer.json``, or None when predictions are
            stored as text.
        decode: how ids become text in phase two.
        memory: of the device that the model runs on.
    """

    new_tokens: int
    tokenizer_json: str | None
    decode: DecodeOptions
    memory: DeviceMemory

    def prompts(self, examples: pa.Table) -> list[Prompt]:
        """Prompts of a chunk's rows, in order."""
        ...

    def predict(self, batch: Sequence[Prompt]) -> list[Prediction]:
        """Predictions for ``batch``, in order."""
        ...
