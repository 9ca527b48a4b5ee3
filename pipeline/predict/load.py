"""Load a model and its tokenizer from a local folder, and refuse what would give nonsense."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipeline.errors import ConfigError, ModelError
from pipeline.predict.config import PredictConfig

if TYPE_CHECKING:
    import torch

Kind = Literal["causal", "seq2seq"]


@dataclass(frozen=True)
class Loaded:
    """A model in eval mode on its device, with its tokenizer."""

    kind: Kind
    model: Any
    tokenizer: Any
    device: torch.device


def load(folder: Path, config: PredictConfig) -> Loaded:
    """Load the model in ``folder`` as ``config`` asks.

    Raises:
        ModelError: no tokenizer, no weights, weights that do not fill the model, or an
            architecture that does not generate text.
        ConfigError: a device that is not there.
    """
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM
    from transformers.utils import logging

    logging.set_verbosity_error()  # its warnings are about choices that are made here
    logging.disable_progress_bar()
    device = pick_device(config.device)
    try:
        model_config = AutoConfig.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{folder}: its config.json cannot be used: {_first_line(error)}"
        ) from None
    tokenizer = load_tokenizer(folder)
    kind = config.engine if config.engine != "auto" else detect_kind(model_config, folder)
    auto_class = AutoModelForSeq2SeqLM if kind == "seq2seq" else AutoModelForCausalLM
    try:
        model, info = auto_class.from_pretrained(
            folder, dtype=_dtype(config.dtype), local_files_only=True, output_loading_info=True
        )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise ModelError(
            f"{folder} cannot be loaded as a {kind} model: {_first_line(error)}"
        ) from None
    if info["missing_keys"]:
        names = sorted(info["missing_keys"])
        raise ModelError(
            f"{folder}: {len(names)} weights of the model are not in its files (first: {names[0]}) "
            "and would be random: save the whole model, or check predict.engine"
        )
    return Loaded(kind, model.eval().to(device), tokenizer, device)


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of ``folder``, its own length limit off: ``prompt`` sees to that."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        raise ModelError(
            f"{folder} has no tokenizer that can be loaded ({_first_line(error)}); save it beside "
            "the model: tokenizer.save_pretrained(folder)"
        ) from None
    tokenizer.model_max_length = 10**30
    return tokenizer


def detect_kind(model_config: Any, folder: Path) -> Kind:
    """``seq2seq`` or ``causal``, from the model's config."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    )

    name = model_config.model_type
    if model_config.is_encoder_decoder and name in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
        return "seq2seq"
    if not model_config.is_encoder_decoder and name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "causal"
    raise ModelError(
        f"{folder} is a {name} model ({', '.join(model_config.architectures or ['?'])}), which "
        "neither continues text nor turns text into text; use a causal or an encoder–decoder model"
    )


def pick_device(name: str) -> torch.device:
    """The named device; ``auto`` is the first of CUDA, XPU, MPS and CPU that there is.

    Raises:
        ConfigError: no such device on this machine.
    """
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        if torch.xpu.is_available():
            return torch.device("xpu")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(
            f"predict.device: '{name}' cannot be used here ({_first_line(error)}); "
            "use auto, cpu, cuda, cuda:N, xpu or mps"
        ) from None
    return device


def _dtype(name: str) -> Any:
    import torch

    return "auto" if name == "auto" else getattr(torch, name)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
