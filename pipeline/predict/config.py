"""The ``predict`` section of params.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from pipeline.config import Config

Positive = Annotated[int, msgspec.Meta(ge=1)]


class PredictConfig(Config, frozen=True):
    """How predictions are made.

    All but ``device`` can change a token and enters the fingerprint.

    Attributes:
        engine: ``causal`` or ``seq2seq``; ``auto`` asks the model's config.
        template: format string over the input columns; None is the one input column itself.
        chat: wrap the prompt in the model's chat template, as a user's message.
        rows: slice of the data set, ``first:stop`` as in Python; None is all rows.
        max_prompt_tokens: longest prompt, in tokens; None is what the model's window leaves. A
            longer one has its longest field cut, never the template around it.
        dtype: numbers to compute in; ``auto`` is what the model is stored in.
        device: ``auto`` is the first of CUDA, XPU, MPS and CPU that there is.
        chunk_rows: rows per chunk: what a kill can lose, and what is held in RAM.
        max_batch_rows: most rows in a batch.
        max_batch_tokens: most tokens in a batch, padded prompts plus new tokens; a single row may
            exceed it. None is no limit.
        on_oom: what becomes of a row that does not fit the memory even alone. ``error`` leaves its
            chunk unwritten, makes the others and fails; ``record`` writes the row empty, with
            finish_reason ``oom``.
        generation: any field of ``transformers.GenerationConfig``; null leaves what the model's
            ``generation_config.json`` says. ``max_new_tokens`` is required.
    """

    engine: Literal["auto", "causal", "seq2seq"] = "auto"
    template: str | None = None
    chat: bool = False
    rows: str | None = None
    max_prompt_tokens: Positive | None = None
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "float32"
    device: str = "auto"
    chunk_rows: Positive = 32
    max_batch_rows: Positive = 16
    max_batch_tokens: Positive | None = 8192
    on_oom: Literal["error", "record"] = "error"
    generation: dict[str, Any] = msgspec.field(default_factory=dict)
