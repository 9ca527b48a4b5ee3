"""What an architecture does to its logits after the output head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Finishing = Callable[[Any, Any], Any]


def plain(model: Any, logits: Any) -> Any:
    """Nothing."""
    return logits


def _soft_cap(model: Any, logits: Any) -> Any:
    import torch

    cap = model.config.final_logit_softcapping
    return logits if cap is None else torch.tanh(logits / cap) * cap


def _bias(model: Any, logits: Any) -> Any:
    return logits + model.final_logits_bias.to(logits.device)


def _multiply(model: Any, logits: Any) -> Any:
    return logits * model.logit_scale


def _divide(model: Any, logits: Any) -> Any:
    return logits / model.config.logits_scaling


# model_type -> what follows the head; each of them is tested against the model's own logits.
FINISHING: Mapping[str, Finishing] = {
    "gpt2": plain,
    "llama": plain,
    "qwen2": plain,
    "opt": plain,
    "gpt_neox": plain,
    "t5": plain,
    "gemma2": _soft_cap,
    "bart": _bias,
    "marian": _bias,
    "cohere": _multiply,
    "granite": _divide,
}
