"""The engine on tiny random models: what a batch gives is what each prompt gives alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.errors import ConfigError, ModelError
from pipeline.predict.config import PredictConfig
from pipeline.predict.examples import Examples
from pipeline.predict.fingerprint import model_content
from pipeline.predict.generate import GenerateEngine, cut_at_eos, pad
from pipeline.predict.generation import check_generation
from pipeline.predict.load import load, pick_device
from pipeline.predict.prompt import Prompt, Template
from tests.examples import write_examples
from tests.models import TEXTS, save_gpt2, save_tokenizer

PROMPTS = [*TEXTS, TEXTS[0] * 2, "a", "b c"]


def make_engine(
    folder: Path, *, inputs: tuple[str, ...] = ("document",), **keys: Any
) -> GenerateEngine:
    keys.setdefault("generation", {"max_new_tokens": 12})
    config = PredictConfig(device="cpu", **keys)
    template, fields = Template(config.template, inputs), check_generation(config.generation)
    return GenerateEngine(load(folder, config), config, template, fields)


def alone(folder: Path, text: str, **generation: Any) -> list[int]:
    """What transformers generates for one prompt, without any batch."""
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoder_decoder = folder.name.startswith("t5")
    auto = AutoModelForSeq2SeqLM if encoder_decoder else AutoModelForCausalLM
    model = auto.from_pretrained(folder).eval()
    inputs = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
    eos = tokenizer.eos_token_id
    with torch.inference_mode():
        output = model.generate(
            **inputs, do_sample=False, pad_token_id=eos, max_new_tokens=12, **generation
        )
    skip = 1 if encoder_decoder else inputs["input_ids"].shape[1]
    ids: list[int] = output[0, skip:].tolist()
    return cut_at_eos(ids, frozenset([eos]))[0]


@pytest.mark.parametrize("name", ["gpt2", "t5"])
@pytest.mark.parametrize("beams", [1, 3])
def test_unequal_prompts_in_a_batch_give_what_each_gives_alone(
    name: str, beams: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder = request.getfixturevalue(name)
    engine = make_engine(folder, generation={"max_new_tokens": 12, "num_beams": beams})
    rows = Examples(write_examples(tmp_path / "e.parquet", PROMPTS)).read(0, len(PROMPTS))
    prompts = engine.prompts(rows)
    assert len({len(prompt.ids) for prompt in prompts}) > 3
    predictions = engine.predict(prompts)
    expected = [alone(folder, text, num_beams=beams) for text in PROMPTS]
    assert [prediction.ids for prediction in predictions] == expected
    assert len({tuple(ids) for ids in expected}) > 3  # the model does not say one thing only
    assert all(
        prediction.finish_reason == ("length" if len(prediction.ids) == 12 else "eos")
        or prediction.ids[-1] in engine._eos
        for prediction in predictions
    )


def test_an_end_of_text_is_kept_and_what_follows_is_not() -> None:
    assert cut_at_eos([5, 2, 9, 2], frozenset([2])) == ([5, 2], True)
    assert cut_at_eos([2, 2], frozenset([2, 3])) == ([2], True)
    assert cut_at_eos([5, 9], frozenset([2])) == ([5, 9], False)
    assert cut_at_eos([], frozenset()) == ([], False)


def test_padding() -> None:
    assert pad([[1, 2], [3]], 0, left=True) == ([[1, 2], [0, 3]], [[1, 1], [0, 1]])
    assert pad([[1, 2], [3]], 0, left=False) == ([[1, 2], [3, 0]], [[1, 1], [1, 0]])


def test_rows_that_end_early_report_it(gpt2: Path) -> None:
    engine = make_engine(gpt2)
    ids = engine._loaded.tokenizer("a")["input_ids"]
    first = engine.predict([Prompt(ids, False)])[0].ids[0]
    stopped = make_engine(gpt2, generation={"max_new_tokens": 12, "eos_token_id": first})
    (prediction,) = stopped.predict([Prompt(ids, False)])
    assert (prediction.ids, prediction.finish_reason) == ([first], "eos")


def test_the_model_is_not_trained_on(gpt2: Path) -> None:
    engine = make_engine(gpt2)
    assert not engine._loaded.model.training
    engine.predict([Prompt([5, 6], False)])
    assert all(parameter.grad is None for parameter in engine._loaded.model.parameters())


def test_the_chat_template_wraps_the_prompt(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "chat", chat=True)
    engine = make_engine(folder, chat=True, template="Say {document}")
    rows = Examples(write_examples(tmp_path / "e.parquet", ["a fox"])).read(0, 1)
    (prompt,) = engine.prompts(rows)
    assert engine._loaded.tokenizer.decode(prompt.ids) == "[user] Say a fox [answer]"


def test_chat_without_a_template_is_an_error(gpt2: Path) -> None:
    with pytest.raises(ModelError, match="tokenizer has no chat template"):
        make_engine(gpt2, chat=True)


def test_a_prompt_beyond_the_window_is_cut_and_counted(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "small", window=32)
    engine = make_engine(folder, template="{document} <end>")
    texts = ["short", "a very long text " * 40]
    rows = Examples(write_examples(tmp_path / "e.parquet", texts)).read(0, 2)
    short, long = engine.prompts(rows)
    assert (short.truncated, long.truncated) == (False, True)
    assert 15 < len(long.ids) <= 32 - 12
    assert engine._loaded.tokenizer.decode(long.ids).endswith(" <end>")
    assert len(engine.predict([short, long])) == 2


def test_more_new_tokens_than_the_window_is_an_error(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "small", window=32)
    with pytest.raises(ConfigError, match="32 do not fit the model's window of 32 tokens"):
        make_engine(folder, generation={"max_new_tokens": 32})


def test_an_empty_prompt_names_its_row(gpt2: Path, tmp_path: Path) -> None:
    engine = make_engine(gpt2)
    rows = Examples(write_examples(tmp_path / "e.parquet", ["a", ""])).read(0, 2)
    with pytest.raises(ConfigError, match="row 1 gives a prompt without a token"):
        engine.prompts(rows)


@pytest.mark.parametrize(
    ("generation", "message"),
    [
        ({}, "max_new_tokens must be a number of at least 1, got None"),
        ({"max_new_tokens": 0}, "at least 1, got 0"),
        (
            {"max_new_tokens": 5, "num_beam": 2},
            r"unknown field 'num_beam' \(did you mean num_beams",
        ),
        ({"max_new_tokens": 5, "do_sample": True}, "sampling is not supported"),
        ({"max_new_tokens": 5, "num_return_sequences": 2}, "one prediction per row"),
        ({"max_new_tokens": 5, "max_length": 9}, "use max_new_tokens"),
    ],
)
def test_generation_fields_that_cannot_be_met(generation: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_generation(generation)


def test_null_leaves_what_the_model_says(gpt2: Path) -> None:
    assert check_generation({"max_new_tokens": 5, "num_beams": None}) == {"max_new_tokens": 5}


def test_sampling_of_the_models_config_is_off(tmp_path: Path) -> None:
    from transformers import GenerationConfig

    folder = save_gpt2(tmp_path / "sampling")
    GenerationConfig(do_sample=True, temperature=0.6, eos_token_id=1).save_pretrained(folder)
    engine = make_engine(folder)
    assert engine._generation.do_sample is False
    prompt = Prompt([5, 6, 7], False)
    assert engine.predict([prompt]) == engine.predict([prompt])


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
