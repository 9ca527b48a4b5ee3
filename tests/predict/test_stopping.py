"""Stop strings: rows end with the token that completes one, whatever padding is around them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast, StopStringCriteria

from pipeline.predict.stopping import StopStrings
from tests.models import EOS, TEXTS, UNK, train_tokenizer
from tests.predict.engine import alone, make_engine, prompts_of

PROMPTS = [*TEXTS, "a", "b c", TEXTS[0] * 2]
TOKENIZER = PreTrainedTokenizerFast(
    tokenizer_object=train_tokenizer(), eos_token=EOS, unk_token=UNK
)


def letters_made(folder: Path, beams: int) -> list[str]:
    """Letters that the model makes, so that strings of them stop it."""
    engine = make_engine(folder, generation={"max_new_tokens": 12, "num_beams": beams})
    made = engine.predict(prompts_of(engine, PROMPTS))
    text = "".join(engine._loaded.tokenizer.decode(one.ids) for one in made)
    letters = sorted({letter for letter in text if letter.isascii() and letter.isalpha()})
    return sorted(letters, key=lambda letter: (text.count(letter), letter))


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_a_batch_stops_where_each_row_stops_alone(
    name: str, beams: int, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(name)  # GPT-2 pads with its EOS
    letters = letters_made(folder, beams)
    strings = letters[len(letters) // 2 :][:3]
    fields = {"num_beams": beams, "stop_strings": strings}
    engine = make_engine(folder, generation={"max_new_tokens": 12, **fields})
    predictions = engine.predict(prompts_of(engine, PROMPTS))
    assert [p.ids for p in predictions] == [alone(folder, text, **fields) for text in PROMPTS]
    reasons = [prediction.finish_reason for prediction in predictions]
    assert {"stop", "length"} <= set(reasons)
    for prediction in predictions:
        text = engine._loaded.tokenizer.decode(prediction.ids)
        if prediction.finish_reason == "stop":
            assert any(string in text for string in strings)
            before = engine._loaded.tokenizer.decode(prediction.ids[:-1])
            assert not any(string in before for string in strings)


def test_padding_after_a_stop_is_not_read_as_eos(gpt2: Path) -> None:
    engine = make_engine(gpt2, generation={"max_new_tokens": 12, "stop_strings": ["x"]})
    x, a = (engine._loaded.tokenizer.get_vocab()[letter] for letter in "xa")
    eos = engine._loaded.tokenizer.eos_token_id
    assert engine._generation.pad_token_id == eos
    assert engine._cut([a], [a, x, eos, eos]) == ([a, x], "stop")
    assert engine._cut([a], [a, eos, x]) == ([a, eos], "eos")
    assert engine._cut([a], [a, a]) == ([a, a], "length")
    assert engine._cut([a], [a, x, -1, -1]) == ([a, x], "stop")  # beams without an EOS


def test_padding_does_not_begin_a_stop_string(gpt2: Path) -> None:
    engine = make_engine(gpt2)
    prompt, longer = prompts_of(engine, ["a", TEXTS[0]])
    (plain,) = engine.predict([prompt])
    first = engine._loaded.tokenizer.decode(plain.ids[:1])
    stopping = {"max_new_tokens": 12, "stop_strings": [f"{EOS}a{first}"]}
    assert make_engine(gpt2, generation=stopping).predict([prompt, longer])[0] == plain


def test_an_eos_that_is_the_stop_string_is_an_eos(gpt2: Path) -> None:
    engine = make_engine(gpt2, generation={"max_new_tokens": 12, "stop_strings": [EOS]})
    eos = engine._loaded.tokenizer.eos_token_id
    assert engine._cut([5], [7, eos, eos]) == ([7, eos], "eos")


@settings(max_examples=60, deadline=None)
@given(
    before=st.lists(st.sampled_from(["a", "b", " ", "ab"]), max_size=4),
    new=st.lists(st.sampled_from(["a", "b", " ", "re", "file"]), max_size=8),
    strings=st.lists(st.sampled_from(["a", "ab", "b b", "refile", " a"]), min_size=1, max_size=2),
)
def test_the_end_is_the_first_prefix_that_transformers_stops_at(
    before: list[str], new: list[str], strings: list[str]
) -> None:
    vocabulary = TOKENIZER.get_vocab()

    def ids(texts: list[str]) -> list[int]:
        return [token for text in texts for token in TOKENIZER(text)["input_ids"]]

    start, made = ids(before), ids(new)
    assert vocabulary
    criterion = StopStringCriteria(TOKENIZER, strings)
    expected = None
    for length in range(1, len(made) + 1):
        prefix = torch.tensor([start + made[:length]])
        if criterion(prefix, None).item():
            expected = length
            break
    assert StopStrings(TOKENIZER, strings).end(start, made, "cpu") == expected
