"""The generating engine for a model folder, and the oracle: ``generate`` for one prompt alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from pipeline.predict.config import PredictConfig
from pipeline.predict.generate import GenerateEngine, cut_at_eos
from pipeline.predict.generation import check_generation
from pipeline.predict.load import load
from pipeline.predict.prompt import Prompt
from pipeline.predict.template import Template


def make_engine(
    folder: Path, *, inputs: tuple[str, ...] = ("document",), **keys: Any
) -> GenerateEngine:
    """An engine on the CPU; at most 12 new tokens unless ``generation`` is given."""
    keys.setdefault("generation", {"max_new_tokens": 12})
    config = PredictConfig(**{"device": "cpu", **keys})
    template, fields = Template(config.template, inputs), check_generation(config.generation)
    return GenerateEngine(load(folder, config), config, template, fields)


def prompts_of(engine: GenerateEngine, texts: list[str]) -> list[Prompt]:
    """``texts`` as prompts, numbered from 0."""
    encoded = engine._loaded.tokenizer(texts)["input_ids"]
    return [Prompt(ids, False, row) for row, ids in enumerate(encoded)]


def alone(folder: Path, text: str, **generation: Any) -> list[int]:
    """What transformers generates for one prompt, without any batch."""
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoder_decoder = folder.name.startswith("t5")
    auto = AutoModelForSeq2SeqLM if encoder_decoder else AutoModelForCausalLM
    model = auto.from_pretrained(folder).eval()
    inputs = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
    eos = tokenizer.eos_token_id
    settings = {"max_new_tokens": 12, **generation}
    with torch.inference_mode():
        output = model.generate(
            **inputs, do_sample=False, pad_token_id=eos, tokenizer=tokenizer, **settings
        )
    skip = 1 if encoder_decoder else inputs["input_ids"].shape[1]
    ids: list[int] = output[0, skip:].tolist()
    return cut_at_eos(ids, frozenset([eos]))[0]
