"""Where the model's weights lie and in which numbers: the arguments of ``from_pretrained``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.errors import ConfigError, first_line
from pipeline.extras import require_extra
from pipeline.predict.config import PredictConfig

if TYPE_CHECKING:
    import torch

# Arguments of from_pretrained that have a key of their own.
_OWN_KEYS = {
    "dtype": "dtype",
    "torch_dtype": "dtype",
    "device_map": "device_map",
    "max_memory": "max_memory",
    "quantization_config": "quantization",
    "load_in_4bit": "quantization",
    "load_in_8bit": "quantization",
    "trust_remote_code": "trust_remote_code",
    "local_files_only": "device",
    "output_loading_info": "device",
    "config": "model_kwargs",
}


def model_arguments(config: PredictConfig, model_config: Any) -> dict[str, Any]:
    """Arguments of ``from_pretrained``, without the folder.

    Args:
        config: the ``predict`` section.
        model_config: the model's own configuration.

    Raises:
        ConfigError: settings that exclude each other, or an argument that has its own key.
        MissingExtraError: bitsandbytes or accelerate are not installed.
    """
    arguments = dict(config.model_kwargs)
    for name in arguments:
        if name in _OWN_KEYS:
            raise ConfigError(
                f"predict.model_kwargs.{name} is not taken: this program sets it (see "
                f"predict.{_OWN_KEYS[name]})"
            )
    arguments |= {"dtype": _dtype(config.dtype), "trust_remote_code": config.trust_remote_code}
    arguments |= placement(config)
    if config.quantization is not None:
        arguments["quantization_config"] = _quantization(config, model_config)
        arguments.setdefault("device_map", {"": pick_device(config.device)})
    return arguments


def placement(config: PredictConfig) -> dict[str, Any]:
    """``device_map`` and ``max_memory``, or nothing for a model on one device.

    Raises:
        ConfigError: settings that exclude each other.
        MissingExtraError: accelerate is not installed.
    """
    if config.device_map is None:
        if config.max_memory is not None:
            raise ConfigError("predict.max_memory needs predict.device_map: auto")
        return {}
    if config.device != "auto":
        raise ConfigError(
            f"predict.device is '{config.device}', but predict.device_map spreads the model over "
            "devices; set one of the two (device: auto, or device_map: null)"
        )
    require_extra("predict.device_map", "predict", ["accelerate"])
    chosen: dict[str, Any] = {"device_map": config.device_map}
    if config.max_memory is not None:
        # GPUs are numbered, other devices named; a YAML key may be either.
        chosen["max_memory"] = {
            int(name) if str(name).isdecimal() else name: size
            for name, size in config.max_memory.items()
        }
    return chosen


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
        torch.empty(1, device=device).cpu()  # which "meta" cannot do: nothing is computed there
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(
            f"predict.device: '{name}' cannot be used here ({first_line(error)}); "
            "use auto, cpu, cuda, cuda:N, xpu or mps"
        ) from None
    return device


def input_device(model: Any) -> torch.device:
    """Where inputs go: where the first weights lie that are not offloaded."""
    import torch

    devices = (parameter.device for parameter in model.parameters())
    return next((device for device in devices if device.type != "meta"), torch.device("cpu"))


def _quantization(config: PredictConfig, model_config: Any) -> Any:
    """NF4 with double quantization (Dettmers et al., QLoRA, 2023), or LLM.int8() (2022)."""
    require_extra("predict.quantization", "quantization", ["bitsandbytes", "accelerate"])
    import torch
    from transformers import BitsAndBytesConfig

    if getattr(model_config, "quantization_config", None) is not None:
        raise ConfigError(
            "predict.quantization: the model is quantized already; set it to null to use it as "
            "it is"
        )
    if config.quantization == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    stored = getattr(model_config, "dtype", None) or torch.float32
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=stored if config.dtype == "auto" else _dtype(config.dtype),
    )


def _dtype(name: str) -> Any:
    import torch

    return "auto" if name == "auto" else getattr(torch, name)
