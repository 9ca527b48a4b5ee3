from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pipeline.errors import ModelError
from pipeline.fetch.files import (
    TOKENIZERS,
    check_model,
    count_parameters,
    model_files,
    size_bytes,
)


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        # One file of safetensors goes before all else.
        (["model.safetensors", "pytorch_model.bin", "tf_model.h5"], ["model.safetensors"]),
        # A training run's leftovers, and a variant that is not loaded by name.
        (
            ["model.safetensors", "optimizer.pt", "rng_state.pth", "training_args.bin"]
            + ["trainer_state.json", "model.fp16.safetensors", "README.md", ".gitattributes"],
            ["model.safetensors"],
        ),
        # Mistral's second copy of its weights.
        (
            ["model.safetensors.index.json", "model-00001-of-00001.safetensors"]
            + ["consolidated.safetensors"],
            ["model-00001-of-00001.safetensors", "model.safetensors.index.json"],
        ),
        (
            ["pytorch_model.bin.index.json", "pytorch_model-00001-of-00001.bin"],
            ["pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json"],
        ),
        (["pytorch_model.bin", "model.gguf"], ["pytorch_model.bin"]),
        (["optimizer.pt"], []),
    ],
)
def test_the_files_that_transformers_would_load(there: list[str], chosen: list[str]) -> None:
    texts = ["config.json", "tokenizer.json", "chat_template.jinja", "vocab.txt"]
    assert model_files([*there, *texts]) == sorted([*chosen, *texts])


def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "model"))


def test_complete_models_pass(gpt2: Path, t5: Path) -> None:
    check_model(gpt2, "gpt2")
    check_model(t5, "t5")


def test_no_config(gpt2: Path, tmp_path: Path) -> None:
    model = copy(gpt2, tmp_path)
    (model / "config.json").unlink()
    with pytest.raises(ModelError, match=r"^MODEL holds no config.json.*save_pretrained"):
        check_model(model, "MODEL")


def test_no_tokenizer_says_what_to_type(gpt2: Path, tmp_path: Path) -> None:
    model = copy(gpt2, tmp_path)
    for name in TOKENIZERS:
        (model / name).unlink(missing_ok=True)
    with pytest.raises(ModelError, match=r"holds no tokenizer.*tokenizer\.save_pretrained\('"):
        check_model(model, "MODEL")


def test_no_weights(gpt2: Path, tmp_path: Path) -> None:
    model = copy(gpt2, tmp_path)
    (model / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"holds no weights.*model\.save_pretrained"):
        check_model(model, "MODEL")


def test_a_missing_shard_is_named(gpt2: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = copy(gpt2, tmp_path)
    (model / "model.safetensors").unlink()
    AutoModelForCausalLM.from_pretrained(gpt2).save_pretrained(model, max_shard_size="20KB")
    shards = sorted(model.glob("model-*.safetensors"))
    assert len(shards) > 1
    check_model(model, "MODEL")
    assert count_parameters(model) == count_parameters(gpt2)
    shards[1].unlink()
    with pytest.raises(ModelError, match=rf"index.json names {shards[1].name}, which"):
        check_model(model, "MODEL")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"weight_map": 3}'])
def test_an_index_that_is_none(content: str, gpt2: Path, tmp_path: Path) -> None:
    model = copy(gpt2, tmp_path)
    (model / "model.safetensors").unlink()
    (model / "model.safetensors.index.json").write_text(content)
    with pytest.raises(ModelError, match="index.json is not an index of weights"):
        check_model(model, "MODEL")


def test_parameters_and_size(gpt2: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    # num_parameters counts tied weights once, as they are stored.
    assert count_parameters(gpt2) == AutoModelForCausalLM.from_pretrained(gpt2).num_parameters()
    assert size_bytes(gpt2) == sum(path.stat().st_size for path in gpt2.iterdir())
    assert count_parameters(tmp_path) is None


def safetensors(header: bytes, data: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + data


@pytest.mark.parametrize("size", [0, 5, 100, -1])
def test_a_file_that_was_cut_is_named(size: int, gpt2: Path, tmp_path: Path) -> None:
    model = copy(gpt2, tmp_path)
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:size])
    with pytest.raises(ModelError, match=r"model/model.safetensors .*save, copy or fetch it again"):
        check_model(model, "MODEL")


def test_what_is_behind_the_tensors_is_damage_too(gpt2: Path, tmp_path: Path) -> None:
    model = copy(gpt2, tmp_path)
    size = (model / "model.safetensors").stat().st_size
    with (model / "model.safetensors").open("ab") as handle:
        handle.write(b"more")
    with pytest.raises(ModelError, match=f"has {size + 4} bytes where its header says {size}, so"):
        check_model(model, "MODEL")


def test_a_shard_that_was_cut_is_named(gpt2: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = copy(gpt2, tmp_path)
    (model / "model.safetensors").unlink()
    AutoModelForCausalLM.from_pretrained(gpt2).save_pretrained(model, max_shard_size="20KB")
    last = sorted(model.glob("model-*.safetensors"))[-1]
    last.write_bytes(last.read_bytes()[:-10])
    with pytest.raises(ModelError, match=f"{last.name} has .* so it was cut or is damaged"):
        check_model(model, "MODEL")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("garbage", "is not JSON (Expecting value: line 1 column 1 (char 0))"),
        ("", "is not JSON ("),
        ("\udcff", "is not JSON ('utf-8' codec can't decode"),
        ("[]", "is to hold a JSON object, not []"),
        ("[" * 100_000, "is not JSON ("),
    ],
)
def test_a_config_that_is_none(content: str, message: str, gpt2: Path, tmp_path: Path) -> None:
    model = copy(gpt2, tmp_path)
    (model / "config.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ModelError, match=re.escape(f"MODEL: its config.json {message}")):
        check_model(model, "MODEL")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 30,
        safetensors(b"no json.."),
        safetensors(b"[]"),
        safetensors(b'{"a": 3}'),
        safetensors(b'{"a": {"shape": [1], "data_offsets": [0]}}'),
    ],
)
def test_damaged_safetensors_are_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match="model.safetensors is not a safetensors file or is dam"):
        count_parameters(tmp_path)
