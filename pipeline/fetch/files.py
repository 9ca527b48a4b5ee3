"""Which files make up a model, and whether they are all there."""

from __future__ import annotations

import fnmatch
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipeline.errors import ModelError

# What transformers loads, in its order of preference. An index names shards beside it.
WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
# One of these is enough for AutoTokenizer.
TOKENIZERS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "source.spm",
    "vocab.json",
    "vocab.txt",
)
# Weights of other libraries, what a training run leaves behind, and fetch's own note.
_NOT_THE_MODEL = (
    *("*.bin", "*.gguf", "*.h5", "*.msgpack", "*.npz", "*.onnx", "*.ot", "*.pt", "*.pth"),
    *("*.safetensors", "*.tflite", "*.index.json"),
    *("events.out.tfevents*", "trainer_state.json", "source.json", ".*", "*.md"),
)


def model_files(names: Iterable[str]) -> list[str]:
    """Those of the file ``names`` of one folder that make up the model, sorted.

    All but weights of another kind than the preferred one and what ``_NOT_THE_MODEL`` lists.
    """
    names = sorted(names)
    chosen = next((name for name in WEIGHTS if name in names), None)
    shards = _shard_pattern(chosen)
    return [
        name
        for name in names
        if name == chosen
        or shards.fullmatch(name)
        or not any(fnmatch.fnmatchcase(name, pattern) for pattern in _NOT_THE_MODEL)
    ]


def _shard_pattern(chosen: str | None) -> re.Pattern[str]:
    if chosen is None or not chosen.endswith(".index.json"):
        return re.compile(r"(?!)")  # matches nothing
    stem, suffix = chosen.removesuffix(".index.json").rsplit(".", 1)
    return re.compile(rf"{re.escape(stem)}-\d+-of-\d+\.{re.escape(suffix)}")


def check_model(folder: Path, where: str) -> None:
    """Check that ``folder`` holds a configuration, a tokenizer and all its weights.

    Args:
        folder: where the files are.
        where: how messages name it.

    Raises:
        ModelError: says what is missing and what to do.
    """
    names = {path.name for path in folder.iterdir()}
    if "config.json" not in names:
        raise ModelError(
            f"{where} holds no config.json, so it is not a model that transformers can load; "
            "name the folder that model.save_pretrained(folder) wrote"
        )
    if not names.intersection(TOKENIZERS):
        raise ModelError(
            f"{where} holds no tokenizer (none of {', '.join(TOKENIZERS)}); save the one that the "
            f"model was trained with beside it: tokenizer.save_pretrained({str(folder)!r})"
        )
    chosen = next((name for name in WEIGHTS if name in names), None)
    if chosen is None:
        raise ModelError(
            f"{where} holds no weights (none of {', '.join(WEIGHTS)}); write them with "
            f"model.save_pretrained({str(folder)!r})"
        )
    if chosen.endswith(".index.json"):
        missing = sorted(_shards(folder / chosen, where) - names)
        if missing:
            raise ModelError(
                f"{where}: {chosen} names {', '.join(missing)}, which the folder does not hold; "
                "save or copy the model again"
            )


def _shards(index: Path, where: str) -> set[str]:
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ModelError(
            f"{where}: {index.name} is not an index of weights; save or copy the model again"
        ) from None
    return shards


def size_bytes(folder: Path) -> int:
    """Bytes of all files in ``folder``, links followed."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def count_parameters(folder: Path) -> int | None:
    """Parameters of the model as stored (tied ones once); None where there is no safetensors.

    Raises:
        ModelError: a safetensors file whose header cannot be read, so it is damaged.
    """
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        return None
    return sum(
        math.prod(map(int, tensor["shape"]))
        for path in paths
        for name, tensor in _header(path).items()
        if name != "__metadata__"
    )


def _header(path: Path) -> dict[str, Any]:
    """The JSON header of a safetensors file: 8 bytes of length (little-endian), then the text."""
    with path.open("rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        try:
            if length > 100_000_000:  # the format's own limit
                raise ValueError
            header = json.loads(handle.read(length))
        except ValueError:
            raise ModelError(
                f"{path} is not a safetensors file or is damaged; save, copy or fetch it again"
            ) from None
    assert isinstance(header, dict)
    return header
