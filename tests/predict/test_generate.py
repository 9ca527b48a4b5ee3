"""The engine on tiny random models: what a batch gives is what each prompt gives alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.errors import ConfigError, ModelError
from pipeline.predict.examples import Examples
from pipeline.predict.generate import cut_at_eos, pad
from pipeline.predict.prompt import Prompt
from tests.examples import write_examples
from tests.models import TEXTS, save_gpt2
from tests.predict.engine import alone, make_engine, prompts_of

PROMPTS = [*TEXTS, TEXTS[0] * 2, "a", "b c"]


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


@pytest.mark.parametrize("generation", [{}, {"num_beams": 3}, {"do_sample": True, "top_k": 5}])
@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_the_log_likelihood_is_of_the_models_own_logits(
    name: str, generation: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    folder = request.getfixturevalue(name)
    fields = {"max_new_tokens": 12, "repetition_penalty": 1.5, **generation}
    engine = make_engine(folder, generation=fields, logprob=True)
    assert engine.optional == ("logprob",)
    prompts = prompts_of(engine, PROMPTS)
    auto = AutoModelForSeq2SeqLM if name == "t5" else AutoModelForCausalLM
    model = auto.from_pretrained(folder).eval()
    for prompt, prediction in zip(prompts, engine.predict(prompts), strict=True):
        new = torch.tensor([prediction.ids])
        ids = torch.tensor([prompt.ids])
        with torch.inference_mode():
            if name == "t5":
                start = torch.tensor([[model.config.decoder_start_token_id]])
                decoder = torch.cat([start, new[:, :-1]], dim=1)
                logits = model(input_ids=ids, decoder_input_ids=decoder).logits
            else:
                logits = model(torch.cat([ids, new], dim=1)).logits[:, len(prompt.ids) - 1 : -1]
        each = logits.double().log_softmax(-1).gather(-1, new[..., None])
        assert prediction.extra == {"logprob": pytest.approx(float(each.sum()), rel=1e-4, abs=1e-4)}


@pytest.mark.parametrize(
    "generation",
    [
        {"num_beams": 0},
        {"num_beams": "4"},
        {"repetition_penalty": -1.0},
        {"repetition_penalty": "x"},
        {"eos_token_id": [[1]]},
        {"pad_token_id": 99999},
        {"bad_words_ids": []},
        {"bad_words_ids": [[99999]]},
        {"forced_eos_token_id": 99999},
        {"exponential_decay_length_penalty": "x"},
        {"stop_strings": []},
        {"sequence_bias": {}},
    ],
)
def test_what_generate_would_refuse_is_known_before_the_first_chunk(
    generation: dict[str, Any], gpt2: Path
) -> None:
    with pytest.raises(ConfigError, match=r"predict\.generation"):
        make_engine(gpt2, generation={"max_new_tokens": 4, **generation})


def test_trying_out_changes_no_prediction(gpt2: Path) -> None:
    engine = make_engine(gpt2)
    assert engine._generation.max_new_tokens == engine.new_tokens == 12
    assert engine._generation.min_new_tokens is None


def test_a_tokenizer_that_knows_more_than_the_model_is_named(gpt2: Path, tmp_path: Path) -> None:
    engine = make_engine(gpt2)
    engine._loaded.model.resize_token_embeddings(100)
    rows = Examples(write_examples(tmp_path / "e.parquet", ["a fox", "naïve"])).read(0, 2)
    with pytest.raises(ModelError, match=r"row \d has token id \d+, but the model knows 100"):
        engine.prompts(rows)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('system first') }}", "cannot be used .*system first"),
        ("{% if tools|length > 0 %}x{% endif %}", "cannot be used .*has no len"),
        ("{{ 1 / 0 }}", "cannot be used .*division by zero"),
        ("{% for part in messages[0].content %}{{ part.text }}{% endfor %}", "leaves the text"),
    ],
)
def test_a_chat_template_that_cannot_be_used_is_named(
    tmp_path: Path, template: str, message: str
) -> None:
    folder = save_gpt2(tmp_path / "chat", chat=True)
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(ModelError, match=f"chat template {message}"):
        make_engine(folder, chat=True)


def test_several_chat_templates_without_a_default_are_named(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = save_gpt2(tmp_path / "chat")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = {"rag": "{{ messages }}", "tool_use": "{{ messages }}"}
    tokenizer.save_pretrained(folder)
    with pytest.raises(ModelError, match="chat template cannot be used .*no default"):
        make_engine(folder, chat=True)


def test_a_chat_template_writes_the_same_date_every_day(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "chat", chat=True)
    template = "{{ strftime_now('%d %b %Y') }}: {{ messages[0].content }}"
    (folder / "chat_template.jinja").write_text(template)
    engine = make_engine(folder, chat=True)
    rows = Examples(write_examples(tmp_path / "e.parquet", ["a fox"])).read(0, 1)
    (prompt,) = engine.prompts(rows)
    assert engine._loaded.tokenizer.decode(prompt.ids) == "26 Jul 2024: a fox"
