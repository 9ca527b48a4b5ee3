"""The model's tokenizer: loaded, and described so that phase two can decode without it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError, ModelError, first_line
from pipeline.store.card import DecodeOptions


def load_tokenizer(
    folder: Path, arguments: Mapping[str, Any] | None = None, *, trust_remote_code: bool = False
) -> Any:
    """The tokenizer of ``folder``, its own length limit off: ``prompt`` sees to that.

    Args:
        folder: where the model is.
        arguments: of ``from_pretrained``, such as ``src_lang``.
        trust_remote_code: let the folder's own Python code run.

    Raises:
        ModelError: none that can be loaded.
        ConfigError: arguments that it refuses.
    """
    from transformers import AutoTokenizer

    failures = (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=trust_remote_code, **(arguments or {})
        )
    except failures as error:
        if arguments:
            raise ConfigError(
                f"predict.tokenizer: {', '.join(arguments)}: the tokenizer of {folder} refuses "
                f"({first_line(error)})"
            ) from None
        raise ModelError(
            f"{folder} has no tokenizer that can be loaded ({first_line(error)}); save it beside "
            "the model: tokenizer.save_pretrained(folder)"
        ) from None
    tokenizer.model_max_length = 10**30
    return tokenizer


def tokenizer_json(tokenizer: Any) -> str | None:
    """What ``tokenizers`` needs to decode, or None for tokenizers that exist in Python only."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not hasattr(backend, "to_str"):
        return None
    return str(backend.to_str(pretty=False))


def decode_options(tokenizer: Any) -> DecodeOptions:
    """How ``tokenizer.decode`` treats spaces: for BPE, transformers ignores the clean-up."""
    clean_up = bool(getattr(tokenizer, "clean_up_tokenization_spaces", False))
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and type(backend.model).__name__ == "BPE":
        forced = "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"
        clean_up = clean_up and bool(getattr(tokenizer, forced, False))
    return DecodeOptions(clean_up_tokenization_spaces=clean_up)
