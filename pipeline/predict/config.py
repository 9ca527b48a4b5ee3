"""The ``predict`` section of params.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from pipeline.config import Config

Positive = Annotated[int, msgspec.Meta(ge=1)]


class PredictConfig(Config, frozen=True):
    """How predictions are made.

    All but ``device``, ``device_map`` and ``max_memory`` can change a token and enters the
    fingerprint.

    Attributes:
        engine: ``causal``, ``seq2seq`` or ``ctc`` (speech); ``auto`` asks the model's config.
            ``forced`` evaluates the references, teacher-forced, in place of generating.
        adapter: a PEFT adapter on top of the model, a folder or a hub id; its content enters the
            fingerprint.
        template: format string over the input columns; None is the one input column itself.
        chat: wrap the prompt in the model's chat template, as a user's message.
        rows: slice of the data set, ``first:stop`` as in Python; None is all rows.
        max_prompt_tokens: longest prompt, in tokens; None is what the model's window leaves. A
            longer one has its longest field cut, never the template around it.
        max_label_tokens: longest reference of ``forced``, in tokens; None is what the model's
            window allows, half of it for a causal model.
        tokenizer: arguments of the tokenizer's ``from_pretrained``, such as ``src_lang``.
        sampling_rate: of audio columns that hold bare samples, in Hz.
        dtype: numbers to compute in; ``auto`` is what the model is stored in.
        quantization: weights in ``4bit`` (NF4, double quantization, computed in ``dtype``) or
            ``8bit`` (LLM.int8()), by bitsandbytes.
        model_kwargs: further arguments of the model's ``from_pretrained``.
        trust_remote_code: let Python code that comes with the model run.
        device: ``auto`` is the first of CUDA, XPU, MPS and CPU that there is.
        device_map: how accelerate spreads the model over devices; None is one device.
        max_memory: most memory that ``device_map`` takes, by GPU number or ``cpu``.
        chunk_rows: rows per chunk: what a kill can lose, and what is held in RAM.
        max_batch_rows: most rows in a batch.
        max_batch_tokens: most tokens in a batch, padded prompts plus new tokens; a single row may
            exceed it. None is no limit.
        on_oom: what becomes of a row that does not fit the memory even alone. ``error`` leaves its
            chunk unwritten, makes the others and fails; ``record`` writes the row empty, with
            finish_reason ``oom``.
        generation: any field of ``transformers.GenerationConfig``; null leaves what the model's
            ``generation_config.json`` says. ``max_new_tokens`` is required.
        seed: of sampling (``generation.do_sample``); a row's sample depends on it and the row.
        logprob: store the log-likelihood that the model itself gives to the new tokens.
    """

    engine: Literal["auto", "causal", "seq2seq", "ctc", "forced"] = "auto"
    adapter: str | None = None
    template: str | None = None
    chat: bool = False
    rows: str | None = None
    max_prompt_tokens: Positive | None = None
    max_label_tokens: Positive | None = None
    tokenizer: dict[str, Any] = msgspec.field(default_factory=dict)
    sampling_rate: Positive | None = None
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "float32"
    quantization: Literal["4bit", "8bit"] | None = None
    model_kwargs: dict[str, Any] = msgspec.field(default_factory=dict)
    trust_remote_code: bool = False
    device: str = "auto"
    device_map: Literal["auto", "balanced", "balanced_low_0", "sequential"] | None = None
    max_memory: dict[str | int, str | int] | None = None
    chunk_rows: Positive = 32
    max_batch_rows: Positive = 16
    max_batch_tokens: Positive | None = 8192
    on_oom: Literal["error", "record"] = "error"
    generation: dict[str, Any] = msgspec.field(default_factory=dict)
    seed: int = 0
    logprob: bool = False
