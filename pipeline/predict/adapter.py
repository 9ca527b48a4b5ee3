"""A PEFT adapter (LoRA and its kin) on top of the model.

It is not merged into the weights: in bfloat16 merging rounds small updates away, and quantized
weights cannot take them at all, so what is evaluated is what was trained. Its layers sit inside
the model's own modules, so that generation and the output head are the model's. Adapters that
work by a learned prompt have no such layers and are refused.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from pathlib import Path
from typing import Any

from pipeline.errors import ModelError, first_line
from pipeline.extras import require_extra
from pipeline.local import local_path
from pipeline.store.chunk import file_sha256

CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")


def adapter_files(name: str) -> list[Path]:
    """The configuration and the weights of the adapter called ``name``.

    Args:
        name: a folder, or a hub id, which is downloaded into the hub's cache.

    Raises:
        ModelError: not found, or not an adapter.
    """
    folder = local_path(name)
    if folder is None:
        from pipeline.fetch.hub import download_files

        folder = download_files(name, [CONFIG, *WEIGHTS], key="predict.adapter")
    elif not folder.is_dir():
        raise ModelError(
            f"predict.adapter: there is no folder {folder}; a hub id is written owner/name, "
            "without a leading /, . or ~"
        )
    weights = next((folder / file for file in WEIGHTS if (folder / file).is_file()), None)
    if weights is None or not (folder / CONFIG).is_file():
        lacking = CONFIG if weights is not None else " or ".join(WEIGHTS)
        raise ModelError(
            f"predict.adapter: {name} holds no {lacking}, so it is not an adapter; name the folder "
            "that the save_pretrained of a PEFT model wrote (a merged model goes to fetch.model)"
        )
    return [folder / CONFIG, weights]


def adapter_content(name: str) -> str:
    """One hash over the adapter's configuration and weights, for the fingerprint."""
    lines = [f"{file_sha256(path)}  {path.name}\n" for path in adapter_files(name)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def with_adapter(model: Any, name: str, placement: dict[str, Any]) -> Any:
    """``model`` with the layers of the adapter called ``name`` inside it.

    Args:
        model: the base model, on its device.
        name: a folder or a hub id.
        placement: ``device_map`` and ``max_memory`` that the model was loaded with.

    Raises:
        MissingExtraError: peft is not installed.
        ModelError: an adapter that does not fit the model.
    """
    require_extra("predict.adapter", "predict", ["peft"])
    # peft imports bitsandbytes, which names a package that makes 4-bit weights faster on a CPU.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    from peft import PeftConfig, PeftModel

    config_file, _ = adapter_files(name)
    folder = str(config_file.parent)
    try:
        config = PeftConfig.from_pretrained(folder)
        if config.is_prompt_learning:
            raise ValueError(f"a learned prompt ({config.peft_type.value}) has no layers to add")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            adapted = PeftModel.from_pretrained(model, folder, **placement)
        missing = [str(one.message) for one in caught if "missing adapter keys" in str(one.message)]
        if missing:
            raise ValueError(missing[0])
    except (ValueError, RuntimeError, TypeError, KeyError, AttributeError, OSError) as error:
        raise ModelError(
            f"predict.adapter: {name} does not fit a {model.config.model_type} model "
            f"({first_line(error)}); use the model that it was trained on"
        ) from None
    return adapted.get_base_model().eval()
