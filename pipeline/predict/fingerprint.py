"""Which run this is: all that was requested and can change a token, before torch is imported.

A sealed store is published without loading a model, so nothing here may need torch: the model
enters by the content of its files, or by hub id and commit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from pipeline.errors import ModelError
from pipeline.fetch.files import check_model, model_files
from pipeline.predict.adapter import adapter_content
from pipeline.predict.audio import audio_content
from pipeline.predict.config import PredictConfig
from pipeline.store.chunk import file_sha256

# Settings that cannot change a token. dvc.yaml lists all others as params of the stage.
NEUTRAL_KEYS = frozenset({"device", "device_map", "max_memory"})

# Their versions can change a token or the bytes of a chunk.
VERSIONED = ("torch", "transformers", "tokenizers", "pyarrow")
_AUDIO_VERSIONED = ("soundfile", "soxr")


def run_inputs(config: PredictConfig, examples: Path, model: Path) -> dict[str, Any]:
    """The inputs of the run card's fingerprint.

    Args:
        config: the ``predict`` section.
        examples: the prepared data set.
        model: local folder with the model.
    """
    settings = {
        key: value for key, value in msgspec.to_builtins(config).items() if key not in NEUTRAL_KEYS
    }
    if config.adapter is not None:
        settings["adapter"] = adapter_content(config.adapter)  # wherever it lies
    inputs: dict[str, Any] = {
        "version": predict_version(),
        "examples": file_sha256(examples),
        "model": model_content(model),
        "predict": settings,
    }
    if reads_audio(config, model):
        inputs["audio"] = audio_content(examples)
    return inputs


def reads_audio(config: PredictConfig, model: Path) -> bool:
    """Whether the inputs are audio, as ``config.json`` says where ``engine`` is ``auto``."""
    if config.engine != "auto":
        return config.engine == "ctc"
    try:
        entries = json.loads((model / "config.json").read_text(encoding="utf-8"))
    except ValueError:
        return False  # loading the model will say so
    names = entries.get("architectures") if isinstance(entries, dict) else None
    return any(str(name).endswith("ForCTC") for name in names or ())


def predict_version() -> str:
    """``pipeline/predict/VERSION``: bumped when the same settings would give other tokens."""
    return files("pipeline.predict").joinpath("VERSION").read_text(encoding="utf-8").strip()


def model_content(folder: Path) -> str:
    """One hash over the names and contents of the files that make up the model and tokenizer."""
    if not folder.is_dir():
        raise ModelError(
            f"{folder}: no such folder; run `twophase fetch` (or `dvc repro fetch`), or name a "
            "folder or hub id with --model"
        )
    check_model(folder, where=str(folder))
    names = model_files(path.name for path in folder.iterdir() if path.is_file())
    with ThreadPoolExecutor() as pool:  # hashing releases the GIL
        hashes = list(pool.map(file_sha256, [folder / name for name in names]))
    lines = [f"{sha256}  {name}\n" for name, sha256 in zip(names, hashes, strict=True)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def library_versions(inputs: dict[str, Any]) -> dict[str, str]:
    """Versions of the libraries that can change a token, without the build (``+cpu``).

    Args:
        inputs: from ``run_inputs``; they say which of the optional libraries have a part in it.
    """
    names = list(VERSIONED)
    if inputs["predict"]["adapter"] is not None:
        names.append("peft")
    if inputs["predict"]["quantization"] is not None:
        names.append("bitsandbytes")
    if "audio" in inputs:
        names += _AUDIO_VERSIONED
    return versions_of(names)


def versions_of(names: Iterable[str]) -> dict[str, str]:
    """Versions of installed packages without the build (``+cpu``); ``none`` for what is not."""
    found = {}
    for name in names:
        try:
            found[name] = version(name).partition("+")[0]
        except PackageNotFoundError:
            found[name] = "none"
    return found
