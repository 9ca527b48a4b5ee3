"""``predict.generation``: which fields are taken, and what becomes of the model's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import GenerationConfig

from pipeline.errors import ConfigError
from pipeline.predict.generation import check_generation, rows_alone
from pipeline.predict.prompt import Prompt
from tests.models import save_gpt2
from tests.predict.engine import make_engine


@pytest.mark.parametrize(
    ("generation", "message"),
    [
        ({}, "max_new_tokens must be a number of at least 1, got None"),
        ({"max_new_tokens": 0}, "at least 1, got 0"),
        ({"num_beam": 2}, r"unknown field 'num_beam' \(did you mean num_beams"),
        ({"num_return_sequences": 2}, "one prediction per row"),
        ({"max_length": 9}, "max_length counts the prompt too; use max_new_tokens"),
        ({"max_time": 9.0}, "would let the speed of the machine decide"),
        ({"token_healing": True}, "rewrites the prompt"),
        ({"output_logits": True}, "predict.logprob: true stores their sum"),
        ({"do_sample": True, "num_beams": 2}, "would depend on its batch; set num_beams: 1"),
        ({"min_new_tokens": 6}, r"min_new_tokens: 6 are more than max_new_tokens \(5\)"),
        ({"temperature": 0.5}, "temperature shapes sampling only, and sampling is off"),
    ],
)
def test_fields_that_cannot_be_met(generation: dict[str, Any], message: str) -> None:
    if not message.startswith(("max_new_tokens must", "at least")):
        generation = {"max_new_tokens": 5, **generation}
    with pytest.raises(ConfigError, match=message):
        check_generation(generation)


@pytest.mark.parametrize(
    ("generation", "message"),
    [
        ({"penalty_alpha": 0.6, "top_k": 4, "do_sample": None}, "top_k shapes sampling only"),
        ({"num_beams": 4, "num_beam_groups": 2}, "asks for group_beam_search, which"),
        ({"prompt_lookup_num_tokens": 3}, "assisted generation, which takes one row at a time"),
        ({"cache_implementation": "paged"}, "'paged' batches rows by itself"),
        ({"early_stopping": "sometimes"}, "`early_stopping` must be"),
        ({"stop_strings": 5}, "stop_strings: 5 cannot be used"),
        ({"stop_strings": [5]}, r"stop_strings: \[5\] cannot be used"),
        ({"cache_implementation": "quantized"}, "cannot generate with these settings.*quanto"),
        ({"stop_strings": ""}, "an empty string stops nothing"),
        ({"forced_bos_token_id": "__de__"}, "'__de__' is not a token of the model's tokenizer"),
    ],
)
def test_fields_that_do_not_fit_the_model(
    gpt2: Path, generation: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_engine(gpt2, generation={"max_new_tokens": 5, **generation})


def test_any_field_of_generation_config_is_known() -> None:
    for name in vars(GenerationConfig()):
        if not name.startswith("_"):
            check_generation({"max_new_tokens": 5, name: None} | {"max_new_tokens": 5})


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


def test_beams_of_the_model_and_sampling_do_not_go_together(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "beams")
    GenerationConfig(num_beams=4, eos_token_id=1).save_pretrained(folder)
    with pytest.raises(ConfigError, match="the model's own config asks for 4 beams"):
        make_engine(folder, generation={"max_new_tokens": 5, "do_sample": True})


def test_sampling_keeps_the_models_own_shape_until_it_is_set(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "shape")
    GenerationConfig(do_sample=True, temperature=0.6, top_p=0.9, eos_token_id=1).save_pretrained(
        folder
    )
    sampling = {"max_new_tokens": 5, "do_sample": True, "top_p": 0.5}
    config = make_engine(folder, generation=sampling)._generation
    assert (config.temperature, config.top_p) == (0.6, 0.5)


def test_tokens_may_be_named_in_place_of_ids(t5: Path) -> None:
    engine = make_engine(t5, generation={"max_new_tokens": 5, "forced_bos_token_id": "re"})
    token = engine._loaded.tokenizer.get_vocab()["re"]
    predictions = engine.predict([Prompt([9, 10], False), Prompt([11], False)])
    assert [prediction.ids[0] for prediction in predictions] == [token, token]
    named = make_engine(t5, generation={"max_new_tokens": 5, "eos_token_id": ["</s>", "re"]})
    assert named._eos == {engine._loaded.tokenizer.eos_token_id, token}


@pytest.mark.parametrize(
    ("fields", "causal", "seq2seq"),
    [
        ({}, None, None),
        ({"repetition_penalty": 1.2, "no_repeat_ngram_size": 3}, None, None),
        ({"min_new_tokens": 3, "encoder_repetition_penalty": 1.0}, None, None),
        ({"min_length": 3}, "min_length", None),
        ({"forced_bos_token_id": 7}, "forced_bos_token_id", None),
        ({"encoder_no_repeat_ngram_size": 2}, *["encoder_no_repeat_ngram_size"] * 2),
    ],
)
def test_what_padding_would_change_is_predicted_row_by_row(
    fields: dict[str, Any], causal: str | None, seq2seq: str | None
) -> None:
    config = GenerationConfig(**fields)
    assert rows_alone(config, "causal") == causal
    assert rows_alone(config, "seq2seq") == seq2seq


def test_such_rows_share_no_batch(gpt2: Path) -> None:
    assert make_engine(gpt2).max_rows is None
    assert make_engine(gpt2, generation={"max_new_tokens": 5, "min_length": 9}).max_rows == 1
