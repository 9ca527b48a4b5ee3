"""Loading a model: what would give nonsense is refused, and the settings reach it."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.errors import ConfigError, MissingExtraError, ModelError
from pipeline.predict.config import PredictConfig
from pipeline.predict.fingerprint import model_content
from pipeline.predict.load import detect_kind, load
from pipeline.predict.placement import pick_device, placement
from pipeline.predict.prompt import Prompt
from tests.models import save_gpt2, save_tokenizer
from tests.predict.engine import make_engine


def test_a_folder_without_a_tokenizer_is_named(gpt2: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((gpt2 / name).read_bytes())
    with pytest.raises(ModelError, match=r"holds no tokenizer.*tokenizer.save_pretrained"):
        model_content(tmp_path)
    (tmp_path / "tokenizer.json").write_text("not a tokenizer")
    model_content(tmp_path)
    with pytest.raises(ModelError, match=r"has no tokenizer that can be loaded"):
        load(tmp_path, PredictConfig(device="cpu"))


@pytest.mark.parametrize("content", ["[]", "garbage", '{"model_type": []}'])
def test_a_bad_config_is_not_told_as_a_tokenizers(content: str, gpt2: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(gpt2, tmp_path / "model"))
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelError, match=r"model: its config.json cannot be used"):
        load(folder, PredictConfig(device="cpu"))


def test_weights_that_were_cut_are_no_traceback(gpt2: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(gpt2, tmp_path / "model"))
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-10])
    with pytest.raises(ModelError, match="model.safetensors has .* so it was cut or is damaged"):
        model_content(folder)
    with pytest.raises(ModelError, match="cannot be loaded as a causal model"):
        load(folder, PredictConfig(device="cpu"))


def test_missing_weights_are_not_made_up(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_gpt2(tmp_path / "holes")
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if name.endswith("h.1.mlp.c_fc.weight"))
    del weights[name]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"1 weights of the model are not in its files.*c_fc"):
        load(folder, PredictConfig(device="cpu"))


def test_a_model_that_does_not_generate_is_refused(tmp_path: Path) -> None:
    from transformers import ViTConfig

    save_tokenizer(tmp_path)
    ViTConfig().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="is a vit model"):
        load(tmp_path, PredictConfig(device="cpu"))


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"predict.device: 'cuda:99' cannot be used here"):
        pick_device("cuda:99")
    with pytest.raises(ConfigError, match=r"predict.device: 'gpu' cannot be used here"):
        pick_device("gpu")


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        ("GPT2LMHeadModel", "causal"),
        ("T5ForConditionalGeneration", "seq2seq"),
        ("Wav2Vec2ForCTC", "ctc"),
        ("HubertForCTC", "ctc"),
        ("MarianMTModel", "seq2seq"),
        ("Qwen2ForCausalLM", "causal"),
    ],
)
def test_the_engine_is_found_from_the_config(architecture: str, kind: str, tmp_path: Path) -> None:
    import transformers

    config = getattr(transformers, architecture).config_class(architectures=[architecture])
    assert detect_kind(config, tmp_path) == kind


def test_an_engine_that_does_not_suit_the_model_is_an_error(gpt2: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded as a seq2seq model"):
        load(gpt2, PredictConfig(device="cpu", engine="seq2seq"))


@pytest.mark.parametrize(
    ("dtype", "stored", "computed"),
    [
        ("float32", torch.float16, torch.float32),
        ("bfloat16", torch.float16, torch.bfloat16),
        ("float16", torch.float32, torch.float16),
        ("auto", torch.float16, torch.float16),
    ],
)
def test_numbers_are_those_that_were_asked_for(
    tmp_path: Path, gpt2: Path, dtype: Any, stored: torch.dtype, computed: torch.dtype
) -> None:
    from transformers import AutoModelForCausalLM

    save_tokenizer(tmp_path)
    AutoModelForCausalLM.from_pretrained(gpt2, dtype=stored).save_pretrained(tmp_path)
    assert load(tmp_path, PredictConfig(device="cpu", dtype=dtype)).model.dtype == computed


def test_safetensors_go_first(gpt2: Path, tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "both")
    content = model_content(folder)
    (folder / "pytorch_model.bin").write_bytes(b"would not load")
    load(folder, PredictConfig(device="cpu"))
    assert model_content(folder) == content


PROMPTS = [Prompt([5, 6, 7], False, 0), Prompt([8, 9, 10, 11, 12], False, 1)]


def test_a_device_map_gives_the_same_tokens(gpt2: Path, tmp_path: Path) -> None:
    """A CPU that may hold 120 kB of the weights, and a disk for the rest."""
    plain = make_engine(gpt2, logprob=True)
    mapped = make_engine(
        gpt2,
        device="auto",
        device_map="auto",
        max_memory={"cpu": "120KB"},
        model_kwargs={"offload_folder": str(tmp_path)},
        logprob=True,
    )
    assert set(mapped._loaded.model.hf_device_map.values()) == {"cpu", "disk"}
    for one, other in zip(plain.predict(PROMPTS), mapped.predict(PROMPTS), strict=True):
        assert one.ids == other.ids
        assert other.extra == pytest.approx(one.extra)


def test_gpus_of_a_memory_map_may_be_numbers_or_their_names() -> None:
    config = PredictConfig(device_map="auto", max_memory={"0": "20GiB", 1: "2GB", "cpu": "60GiB"})
    assert placement(config)["max_memory"] == {0: "20GiB", 1: "2GB", "cpu": "60GiB"}


@pytest.mark.parametrize("quantization", ["4bit", "8bit"])
def test_quantized_models_generate_on_a_cpu(tmp_path: Path, quantization: Any) -> None:
    folder = save_gpt2(tmp_path / "wide", width=64)  # a block of 4-bit weights
    engine = make_engine(folder, quantization=quantization, dtype="bfloat16", logprob=True)
    modules = {type(module).__name__ for module in engine._loaded.model.modules()}
    assert {"4bit": "Linear4bit", "8bit": "Linear8bitLt"}[quantization] in modules
    if quantization == "4bit":
        settings = engine._loaded.model.config.quantization_config
        assert settings.bnb_4bit_quant_type == "nf4"
        assert settings.bnb_4bit_use_double_quant
        assert settings.bnb_4bit_compute_dtype == torch.bfloat16
    predictions = engine.predict(PROMPTS)
    assert [prediction.finish_reason for prediction in predictions] == ["length", "length"]
    assert all(prediction.extra["logprob"] < 0 for prediction in predictions)
    assert engine.predict(PROMPTS) == predictions


def test_model_arguments_reach_the_model(gpt2: Path) -> None:
    keys = {"attn_implementation": "eager"}
    loaded = load(gpt2, PredictConfig(device="cpu", model_kwargs=keys))
    assert loaded.model.config._attn_implementation == "eager"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"model_kwargs": {"dtype": "auto"}}, r"model_kwargs.dtype is not taken.*predict.dtype"),
        ({"model_kwargs": {"load_in_4bit": True}}, "predict.quantization"),
        ({"model_kwargs": {"attn": 1}}, "model_kwargs: attn: the model refuses"),
        ({"max_memory": {"cpu": "1GiB"}}, "max_memory needs predict.device_map"),
        ({"device_map": "auto"}, "predict.device is 'cpu', but predict.device_map"),
        ({"tokenizer": {"eos_token": 5}}, "predict.tokenizer: eos_token: .* refuses"),
    ],
)
def test_settings_that_exclude_each_other(gpt2: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(gpt2, PredictConfig(device="cpu", **keys))


def test_tokenizer_arguments_reach_the_tokenizer(gpt2: Path) -> None:
    config = PredictConfig(device="cpu", tokenizer={"pad_token": "<pad>"})
    assert load(gpt2, config).tokenizer.pad_token == "<pad>"


def test_language_codes_of_a_translation_model(tmp_path: Path) -> None:
    """An mBART-like tokenizer writes the source language, and the target language is forced."""
    from tests.models import save_mbart

    folder = save_mbart(tmp_path / "mbart")
    fields = {"max_new_tokens": 6, "forced_bos_token_id": "de_DE"}
    engine = make_engine(folder, tokenizer={"src_lang": "fr_XX"}, generation=fields)
    tokenizer = engine._loaded.tokenizer
    french, german = tokenizer.convert_tokens_to_ids(["fr_XX", "de_DE"])
    ids = engine._prompts._encode(["a fox"])[0]
    assert french in ids
    assert [p.ids[0] for p in engine.predict([Prompt(ids, False), Prompt(ids[2:], False)])] == [
        german,
        german,
    ]


def test_code_that_comes_with_a_model_does_not_run_unless_it_is_trusted(
    gpt2: Path, tmp_path: Path
) -> None:
    import json

    folder = save_gpt2(tmp_path / "remote")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "strange",
        "architectures": ["Strange"],
        "auto_map": {
            "AutoConfig": "strange.StrangeConfig",
            "AutoModelForCausalLM": "strange.Strange",
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "strange.py").write_text(
        "from transformers import GPT2Config, GPT2LMHeadModel\n"
        "class StrangeConfig(GPT2Config):\n"
        "    model_type = 'strange'\n"
        "class Strange(GPT2LMHeadModel):\n"
        "    config_class = StrangeConfig\n"
    )
    with pytest.raises(ModelError, match=r"Python code of its own.*trust_remote_code: true"):
        load(folder, PredictConfig(device="cpu"))
    loaded = load(folder, PredictConfig(device="cpu", trust_remote_code=True))
    assert type(loaded.model).__name__ == "Strange"
    before = model_content(folder)
    (folder / "strange.py").write_text((folder / "strange.py").read_text() + "# changed\n")
    assert model_content(folder) != before


@pytest.mark.parametrize(
    ("keys", "module", "extra"),
    [
        ({"quantization": "4bit", "device": "cpu"}, "bitsandbytes", "quantization"),
        ({"device_map": "auto"}, "accelerate", "predict"),
        ({"adapter": "lora", "device": "cpu"}, "peft", "predict"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    gpt2: Path,
    monkeypatch: pytest.MonkeyPatch,
    keys: dict[str, Any],
    module: str,
    extra: str,
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == module else real(name, *rest),
    )
    with pytest.raises(MissingExtraError, match=rf"\[{extra}\] .*{module}.* not installed"):
        load(gpt2, PredictConfig(**keys))


def test_weights_of_another_shape_than_the_config_says_are_told(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "n_embd": 64}))
    with pytest.raises(ModelError, match=r"other shapes than its config\.json says"):
        load(folder, PredictConfig(device="cpu"))
