"""Tiny random models and a tokenizer, built on the spot: no test needs a download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "a function that returns the sum of all its arguments",
    "read a file, line by line, and close it afterwards",
    "naïve café — 北京 and Привет, мир!",
]
PAD, EOS, UNK = "<pad>", "</s>", "<unk>"


def train_tokenizer() -> Any:
    """A byte-level BPE tokenizer over ``TEXTS`` (every byte is in its alphabet)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=[PAD, EOS, UNK],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def save_tokenizer(folder: Path, *, pad: bool = True, chat: bool = False, **extra: Any) -> Any:
    """Save the tokenizer for transformers into ``folder``."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=train_tokenizer(),
        eos_token=EOS,
        unk_token=UNK,
        **({"pad_token": PAD} if pad else {}),
        **extra,
    )
    if chat:
        tokenizer.chat_template = (
            "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{% endfor %}"
            "{% if add_generation_prompt %} [answer]{% endif %}"
        )
    tokenizer.save_pretrained(folder)
    return tokenizer


def save_gpt2(folder: Path, *, pad: bool = True, chat: bool = False, window: int = 128) -> Path:
    """A causal model; without ``pad`` its tokenizer has no pad token."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = save_tokenizer(folder, pad=pad, chat=chat)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=window,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.4,  # wide, so that greedy tokens differ from prompt to prompt
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def save_t5(folder: Path) -> Path:
    """An encoder–decoder model."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = save_tokenizer(folder)
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
        initializer_factor=3.0,
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder
