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


def save_gpt2(
    folder: Path,
    *,
    pad: bool = True,
    chat: bool = False,
    window: int = 128,
    width: int = 32,
    seed: int = 0,
) -> Path:
    """A causal model; without ``pad`` its tokenizer has no pad token."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = save_tokenizer(folder, pad=pad, chat=chat)
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=window,
        n_embd=width,
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


def tiny_model(name: str, **settings: Any) -> Any:
    """A random model of an architecture, in eval mode, not saved; 64 tokens, 2 layers of 16."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    sizes = {
        "vocab_size": 64,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 1,
    }
    encoder_decoder = {
        "vocab_size": 64,
        "d_model": 16,
        "d_kv": 8,
        "d_ff": 32,
        "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32,
        "num_layers": 2,
        "num_heads": 2,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": 0,
    }
    special: dict[str, dict[str, Any]] = {
        "opt": {"ffn_dim": 32, "word_embed_proj_dim": 16},
        "gemma2": {"final_logit_softcapping": 2.0},
        "cohere": {"logit_scale": 0.25},
        "granite": {"logits_scaling": 3.0},
    }
    seq2seq = name in ("t5", "bart", "marian")
    sizes = encoder_decoder if seq2seq else sizes
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **{**sizes, **special.get(name, {}), **settings})
    model = (AutoModelForSeq2SeqLM if seq2seq else AutoModelForCausalLM).from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():  # wide, so that the best tokens differ
            if parameter.ndim > 1:
                parameter.normal_(std=0.5)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    return model.eval()


def save_lora(folder: Path, base: Path, *, seed: int = 1) -> Path:
    """A LoRA adapter for the GPT-2 in ``base``, whose update is not zero."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base)
    settings = LoraConfig(
        r=4, target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True
    )
    adapted = get_peft_model(model, settings)
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_" in name:
                parameter.normal_()
    adapted.save_pretrained(folder)
    return folder


def save_wav2vec2(folder: Path, *, mask: bool) -> Path:
    """A speech model of 16 kHz with the letters as vocabulary; without ``mask``, a group norm."""
    import json

    import torch
    from transformers import (
        Wav2Vec2Config,
        Wav2Vec2CTCTokenizer,
        Wav2Vec2FeatureExtractor,
        Wav2Vec2ForCTC,
    )

    tokens = ["<pad>", "<s>", "</s>", "<unk>", "|", *"abcdefghijklmnopqrstuvwxyz"]
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.json"
    vocabulary.write_text(json.dumps({token: place for place, token in enumerate(tokens)}))
    Wav2Vec2CTCTokenizer(str(vocabulary)).save_pretrained(folder)
    Wav2Vec2FeatureExtractor(return_attention_mask=mask).save_pretrained(folder)
    torch.manual_seed(0)
    config = Wav2Vec2Config(
        vocab_size=len(tokens),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        conv_dim=(16, 16, 16),
        conv_kernel=(10, 4, 4),
        conv_stride=(8, 4, 4),
        feat_extract_norm="layer" if mask else "group",
        do_stable_layer_norm=mask,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
        pad_token_id=0,
    )
    model = Wav2Vec2ForCTC(config)
    with torch.no_grad():
        model.lm_head.weight.normal_(std=3.0)  # so that letters differ from frame to frame
    model.save_pretrained(folder)
    return folder


def save_mbart(folder: Path) -> Path:
    """A translation model whose tokenizer writes the source language and names the target one."""
    import torch
    from tokenizers import models
    from transformers import MBartConfig, MBartForConditionalGeneration, MBartTokenizer

    pieces = ["<s>", "<pad>", "</s>", "<unk>", *(chr(place) for place in range(32, 127)), "▁"]
    tokenizer = MBartTokenizer(vocab=[(piece, 0.0) for piece in pieces])
    assert isinstance(tokenizer.backend_tokenizer.model, models.Unigram)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = MBartConfig(
        vocab_size=len(tokenizer),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id,
    )
    MBartForConditionalGeneration(config).save_pretrained(folder)
    return folder
