"""Adapters: what PEFT itself computes with them, their content in the fingerprint, clear errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.errors import ModelError
from pipeline.predict.adapter import adapter_content, adapter_files
from pipeline.predict.config import PredictConfig
from pipeline.predict.fingerprint import library_versions, run_inputs
from pipeline.predict.load import load
from tests.examples import write_examples
from tests.models import TEXTS, save_gpt2, save_lora
from tests.predict.engine import make_engine, prompts_of

PROMPTS = [*TEXTS, "a"]


@pytest.fixture(scope="module")
def lora(gpt2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_lora(tmp_path_factory.mktemp("lora"), gpt2)


def test_the_tokens_are_those_of_peft(gpt2: Path, lora: Path) -> None:
    from peft import AutoPeftModelForCausalLM

    engine = make_engine(gpt2, adapter=str(lora), logprob=True)
    prompts = prompts_of(engine, PROMPTS)
    predictions = engine.predict(prompts)
    oracle = AutoPeftModelForCausalLM.from_pretrained(lora).eval()
    plain = make_engine(gpt2).predict(prompts)
    for prompt, prediction in zip(prompts, predictions, strict=True):
        ids = torch.tensor([prompt.ids])
        with torch.inference_mode():
            output = oracle.generate(
                input_ids=ids, do_sample=False, max_new_tokens=12, pad_token_id=1
            )
            new = output[:, len(prompt.ids) :]
            assert prediction.ids == new[0].tolist()[: len(prediction.ids)]
            logits = oracle(input_ids=output).logits[:, len(prompt.ids) - 1 : -1]
        each = logits.log_softmax(-1).gather(-1, new[..., None])[0, : len(prediction.ids)]
        assert prediction.extra["logprob"] == pytest.approx(float(each.sum()), rel=1e-4)
    assert [one.ids for one in predictions] != [one.ids for one in plain]


def test_it_stays_apart_from_the_weights_quantized_ones_too(tmp_path: Path) -> None:
    base = save_gpt2(tmp_path / "wide", width=64)
    adapter = save_lora(tmp_path / "lora", base)
    for keys in ({}, {"quantization": "8bit"}):
        loaded = load(base, PredictConfig(device="cpu", adapter=str(adapter), **keys))
        names = [name for name, _ in loaded.model.named_parameters()]
        assert any("lora_A" in name for name in names)
        assert not loaded.model.training
    engine = make_engine(base, adapter=str(adapter), quantization="8bit")
    plain = make_engine(base, quantization="8bit")
    prompts = prompts_of(engine, PROMPTS)
    assert engine.predict(prompts) != plain.predict(prompts)


def test_its_content_is_in_the_fingerprint_and_its_place_is_not(
    gpt2: Path, lora: Path, tmp_path: Path
) -> None:
    examples = write_examples(tmp_path / "e.parquet", ["a"])

    def inputs(folder: Path) -> dict[str, Any]:
        return run_inputs(PredictConfig(adapter=str(folder)), examples, gpt2)

    base = inputs(lora)
    assert base["predict"]["adapter"] == adapter_content(str(lora))
    assert "peft" in library_versions(base)
    copy = shutil.copytree(lora, tmp_path / "copy")
    (copy / "README.md").write_text("changed")
    assert inputs(copy) == base
    other = save_lora(tmp_path / "other", gpt2, seed=2)
    assert inputs(other) != base
    settings = json.loads((copy / "adapter_config.json").read_text())
    (copy / "adapter_config.json").write_text(json.dumps(settings | {"lora_alpha": 99}))
    assert inputs(copy) != base
    plain = run_inputs(PredictConfig(), examples, gpt2)
    assert "peft" not in library_versions(plain)


def test_what_is_no_adapter_is_named(gpt2: Path, lora: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"predict.adapter: there is no folder .*nowhere"):
        adapter_files(str(tmp_path / "nowhere"))
    with pytest.raises(ModelError, match=r"holds no adapter_model.* merged model goes to fetch"):
        adapter_files(str(gpt2))
    shutil.copytree(lora, tmp_path / "half")
    (tmp_path / "half/adapter_config.json").unlink()
    with pytest.raises(ModelError, match="holds no adapter_config.json"):
        adapter_files(str(tmp_path / "half"))
    with pytest.raises(ModelError, match="the hub's someone/lora .*name a local folder in predict"):
        adapter_files("someone/lora")  # offline


def test_an_adapter_of_another_base_is_refused(t5: Path, lora: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"does not fit a t5 model \(Target modules"):
        load(t5, PredictConfig(device="cpu", adapter=str(lora)))
    wide = save_gpt2(tmp_path / "wide", width=64)
    with pytest.raises(ModelError, match=r"does not fit a gpt2 model .*size mismatch"):
        load(wide, PredictConfig(device="cpu", adapter=str(lora)))


def test_missing_weights_of_an_adapter_are_not_made_up(
    gpt2: Path, lora: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(lora, tmp_path / "holes")
    weights = load_file(folder / "adapter_model.safetensors")
    del weights[sorted(weights)[0]]
    save_file(weights, folder / "adapter_model.safetensors")
    with pytest.raises(ModelError, match="missing adapter keys"):
        load(gpt2, PredictConfig(device="cpu", adapter=str(folder)))


def test_a_learned_prompt_is_refused(gpt2: Path, tmp_path: Path) -> None:
    from peft import PromptTuningConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    settings = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(gpt2), settings)
    model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="a learned prompt .* has no layers to add"):
        load(gpt2, PredictConfig(device="cpu", adapter=str(tmp_path)))
