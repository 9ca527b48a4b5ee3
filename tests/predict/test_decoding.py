"""What looks at the ids before the new ones does not see padding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.predict.decoding import blank
from pipeline.predict.stopping import OUTSIDE
from tests.models import TEXTS, save_gpt2
from tests.predict.engine import alone, make_engine, prompts_of

PROMPTS = [*TEXTS, TEXTS[0] * 2, "a", "b c", "a a a a"]
FIELDS: list[dict[str, Any]] = [
    {"repetition_penalty": 1.8},
    {"repetition_penalty": 0.7},
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2},
    {"no_repeat_ngram_size": 4, "num_beams": 2},
    {"bad_words_ids": [[37], [1, 9], [311, 312]]},
    {"sequence_bias": [[[37, 20], 9.0], [[30], 6.0]]},
    {"min_new_tokens": 6, "repetition_penalty": 1.3, "num_beams": 3},
    {"exponential_decay_length_penalty": [2, 1.5]},
]


@pytest.mark.parametrize("fields", FIELDS, ids=str)
@pytest.mark.parametrize("pad", ["eos", "common"])
def test_padding_is_not_seen(
    gpt2: Path, common_pad: Path, fields: dict[str, Any], pad: str
) -> None:
    folder = gpt2 if pad == "eos" else common_pad
    engine = make_engine(folder, generation={"max_new_tokens": 12, **fields})
    assert engine.max_rows is None
    predictions = engine.predict(prompts_of(engine, PROMPTS))
    expected = [alone(folder, text, **fields) for text in PROMPTS]
    assert [prediction.ids for prediction in predictions] == expected
    assert len({tuple(ids) for ids in expected}) > 3


@pytest.fixture(scope="module")
def common_pad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that pads with a token which it also generates."""
    from transformers import GenerationConfig

    folder = save_gpt2(tmp_path_factory.mktemp("common"))
    engine = make_engine(folder, generation={"max_new_tokens": 12})
    made = [p.ids for p in engine.predict(prompts_of(engine, PROMPTS))]
    counts = torch.bincount(torch.tensor([token for ids in made for token in ids]))
    eos = engine._loaded.tokenizer.eos_token_id
    counts[eos] = 0
    GenerationConfig(pad_token_id=int(counts.argmax()), eos_token_id=eos).save_pretrained(folder)
    return folder


def test_the_fields_change_something(gpt2: Path) -> None:
    plain = [alone(gpt2, text) for text in PROMPTS]
    for fields in FIELDS:
        assert [alone(gpt2, text, **fields) for text in PROMPTS] != plain, fields


@pytest.mark.parametrize("fields", [{"no_repeat_ngram_size": 2, "num_beams": 2}], ids=str)
def test_encoders_are_padded_on_the_other_side(t5: Path, fields: dict[str, Any]) -> None:
    engine = make_engine(t5, generation={"max_new_tokens": 12, **fields})
    predictions = engine.predict(prompts_of(engine, PROMPTS))
    assert [p.ids for p in predictions] == [alone(t5, text, **fields) for text in PROMPTS]


def test_padding_is_blanked_for_each_beam() -> None:
    ids = torch.tensor([[7, 7, 5], [7, 7, 6], [7, 8, 9], [7, 8, 7]])
    assert blank(ids, [2, 0]).tolist() == [
        [OUTSIDE, OUTSIDE, 5],
        [OUTSIDE, OUTSIDE, 6],
        [7, 8, 9],
        [7, 8, 7],
    ]


def test_padding_does_not_begin_a_forbidden_sequence(gpt2: Path) -> None:
    engine = make_engine(gpt2)
    (prompt,) = prompts_of(engine, ["a"])
    (plain,) = engine.predict([prompt])
    eos = engine._loaded.tokenizer.eos_token_id
    assert eos == engine._generation.pad_token_id
    words = [[eos, *prompt.ids, plain.ids[0]]]  # complete if the padding were seen
    forbidding = make_engine(gpt2, generation={"max_new_tokens": 12, "bad_words_ids": words})
    assert forbidding.predict([prompt, *prompts_of(engine, [TEXTS[0]])])[0] == plain
