"""Which files make up a model, and whether they are all there."""

from __future__ import annotations

import fnmatch
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path

from pipeline.errors import ModelError, one_line, shown

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
    """Check that ``folder`` holds a configuration, a tokenizer and all its weights, whole.

    Of safetensors the header is read and compared with the size of the file: a copy that was cut
    is found here, not after the minutes that a model takes to load.

    Args:
        folder: where the files are.
        where: how messages name it.

    Raises:
        ModelError: says what is missing or damaged and what to do.
    """
    names = {path.name for path in folder.iterdir()}
    if "config.json" not in names:
        raise ModelError(
            f"{where} holds no config.json, so it is not a model that transformers can load; "
            "name the folder that model.save_pretrained(folder) wrote"
        )
    _check_config(folder / "config.json", where)
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
    files = {chosen}
    if chosen.endswith(".index.json"):
        files = _shards(folder / chosen, where)
        missing = sorted(files - names)
        if missing:
            raise ModelError(
                f"{where}: {chosen} names {', '.join(missing)}, which the folder does not hold; "
                "save or copy the model again"
            )
    for name in sorted(files):
        if name.endswith(".safetensors"):
            _tensor_sizes(folder / name)


def _check_config(path: Path, where: str) -> None:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        found = f"is not JSON ({one_line(str(error))})"
    else:
        if isinstance(config, dict):
            return
        found = f"is to hold a JSON object, not {shown(config)}"
    raise ModelError(
        f"{where}: its config.json {found}, so the model's architecture is not known; save, copy "
        "or fetch the model again"
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
    return sum(sum(_tensor_sizes(path)) for path in paths)


def _tensor_sizes(path: Path) -> list[int]:
    """Elements of each tensor in a safetensors file, which is as long as its header says.

    The file is 8 bytes with the header's length (little-endian), the header as JSON, and the
    tensors one after the other, each between the two ``data_offsets`` that the header gives.

    Raises:
        ModelError: no such file, or one that is damaged or was cut.
    """
    try:
        with path.open("rb") as handle:
            length = int.from_bytes(handle.read(8), "little")
            if length > 100_000_000:  # the format's own limit
                raise ValueError
            header = json.loads(handle.read(length))
        tensors = [tensor for name, tensor in header.items() if name != "__metadata__"]
        sizes = [math.prod(map(int, tensor["shape"])) for tensor in tensors]
        data_bytes = max((int(tensor["data_offsets"][1]) for tensor in tensors), default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise ModelError(
            f"{path} is not a safetensors file or is damaged; save, copy or fetch it again"
        ) from None
    expected, found = 8 + length + data_bytes, path.stat().st_size
    if found != expected:
        raise ModelError(
            f"{path} has {found} bytes where its header says {expected}, so it was cut or is "
            "damaged; save, copy or fetch it again"
        )
    return sizes
