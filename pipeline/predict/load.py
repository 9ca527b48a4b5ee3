"""Load a model and its tokenizer from a local folder, and refuse what would give nonsense."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipeline.errors import ConfigError, ModelError, first_line
from pipeline.predict.adapter import with_adapter
from pipeline.predict.config import PredictConfig
from pipeline.predict.placement import input_device, model_arguments, pick_device, placement
from pipeline.predict.tokenizer import load_tokenizer

if TYPE_CHECKING:
    import torch

Kind = Literal["causal", "seq2seq", "ctc"]


@dataclass(frozen=True)
class Loaded:
    """A model in eval mode on its device, with its tokenizer.

    Attributes:
        kind: what it does.
        model: the model, an adapter's layers inside it.
        tokenizer: its tokenizer.
        device: where its inputs go.
    """

    kind: Kind
    model: Any
    tokenizer: Any
    device: torch.device


def load(folder: Path, config: PredictConfig) -> Loaded:
    """Load the model in ``folder`` as ``config`` asks.

    Raises:
        ModelError: no tokenizer, no weights, weights that do not fill the model, an adapter that
            does not fit, or an architecture that does not make text.
        ConfigError: a device that is not there, or arguments that are refused.
        MissingExtraError: a setting whose packages are not installed.
    """
    from transformers.utils import logging

    logging.set_verbosity_error()  # its warnings are about choices that are made here
    logging.disable_progress_bar()
    model_config = load_model_config(folder, trust_remote_code=config.trust_remote_code)
    kind = choose_kind(model_config, folder, config.engine)
    tokenizer = load_tokenizer(folder, config.tokenizer, trust_remote_code=config.trust_remote_code)
    model = _load_model(folder, kind, config, model_config)
    if config.device_map is None and config.quantization is None:
        model = model.to(pick_device(config.device))
    if config.adapter is not None:
        model = with_adapter(model, config.adapter, placement(config))
    return Loaded(kind, model.eval(), tokenizer, input_device(model))


def load_model_config(folder: Path, *, trust_remote_code: bool) -> Any:
    """The model's ``config.json``.

    Raises:
        ModelError: it cannot be used.
    """
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=trust_remote_code
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{folder}: its config.json cannot be used: {_reason(error, trust_remote_code)}"
        ) from None


def _load_model(folder: Path, kind: Kind, config: PredictConfig, model_config: Any) -> Any:
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoModelForCTC, AutoModelForSeq2SeqLM

    classes = {
        "causal": AutoModelForCausalLM,
        "seq2seq": AutoModelForSeq2SeqLM,
        "ctc": AutoModelForCTC,
    }
    arguments = model_arguments(config, model_config)
    try:
        model, info = classes[kind].from_pretrained(
            folder, local_files_only=True, output_loading_info=True, **arguments
        )
    except TypeError as error:
        if not config.model_kwargs:
            raise
        raise ConfigError(
            f"predict.model_kwargs: {', '.join(config.model_kwargs)}: the model refuses "
            f"({first_line(error)})"
        ) from None
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, SafetensorError) as error:
        raise ModelError(
            f"{folder} cannot be loaded as a {kind} model: "
            f"{_reason(error, config.trust_remote_code)}"
        ) from None
    if info["missing_keys"]:
        names = sorted(info["missing_keys"])
        raise ModelError(
            f"{folder}: {len(names)} weights of the model are not in its files (first: {names[0]}) "
            "and would be random: save the whole model, or check predict.engine"
        )
    return model


def choose_kind(model_config: Any, folder: Path, engine: str) -> Kind:
    """What the engine called ``engine`` needs the model to be.

    Raises:
        ModelError: the model is no such thing.
    """
    if engine in ("causal", "seq2seq", "ctc"):
        return engine  # type: ignore[return-value]  # narrowed by the line above
    kind = detect_kind(model_config, folder)
    if engine == "forced" and kind == "ctc":
        raise ModelError(
            f"{folder} is a {model_config.model_type} model, which has no tokens to force; "
            "predict.engine: forced is for causal and encoder–decoder models"
        )
    return kind


def detect_kind(model_config: Any, folder: Path) -> Kind:
    """``seq2seq``, ``causal`` or ``ctc``, from the model's config."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_CTC_MAPPING_NAMES,
        MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    )

    name = model_config.model_type
    if any(str(class_).endswith("ForCTC") for class_ in model_config.architectures or ()):
        return "ctc"
    remote = getattr(model_config, "auto_map", None) or {}
    if model_config.is_encoder_decoder:
        if (
            name in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
            or "AutoModelForSeq2SeqLM" in remote
        ):
            return "seq2seq"
    elif name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or "AutoModelForCausalLM" in remote:
        return "causal"
    elif name in MODEL_FOR_CTC_MAPPING_NAMES or "AutoModelForCTC" in remote:
        return "ctc"
    raise ModelError(
        f"{folder} is a {name} model ({', '.join(model_config.architectures or ['?'])}), which "
        "neither continues text nor turns text into text or speech into it (CTC); use a causal, "
        "an encoder–decoder or a CTC model"
    )


def _reason(error: Exception, trust_remote_code: bool) -> str:
    if not trust_remote_code and "trust_remote_code" in str(error):
        return (
            "it brings Python code of its own; read that code, then set "
            "predict.trust_remote_code: true to let it run"
        )
    if "ignore_mismatched_sizes" in str(error):
        return (
            "weights in its files have other shapes than its config.json says: one of the two is "
            "another model's"
        )
    return first_line(error)
