"""Sampling: a row's sample depends on (seed, row) alone, and it is a sample of the model's."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.predict.sampling import GumbelNoise, stream_seed
from tests.models import TEXTS
from tests.predict.engine import make_engine, prompts_of

PROMPTS = [*TEXTS, "a", "b c", TEXTS[0] * 2]
SAMPLING: dict[str, Any] = {"max_new_tokens": 12, "do_sample": True}


def ids_of(engine: Any, prompts: list[Any]) -> dict[int, list[int]]:
    made = engine.predict(prompts)
    return {prompt.row: one.ids for prompt, one in zip(prompts, made, strict=True)}


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_alone_in_a_batch_and_in_any_order_it_is_the_same(
    name: str, request: pytest.FixtureRequest
) -> None:
    engine = make_engine(request.getfixturevalue(name), generation=SAMPLING)
    prompts = prompts_of(engine, PROMPTS)
    batch = ids_of(engine, prompts)
    assert len({tuple(ids) for ids in batch.values()}) == len(PROMPTS)
    single = [ids_of(engine, [prompt]) for prompt in prompts]
    assert {row: ids for one in single for row, ids in one.items()} == batch
    shuffled = random.Random(3).sample(prompts, len(prompts))
    assert ids_of(engine, shuffled) == batch
    assert ids_of(engine, shuffled[:3]) | ids_of(engine, shuffled[3:]) == batch


def test_seeds_and_rows_differ_and_a_repetition_does_not(gpt2: Path) -> None:
    prompts = prompts_of(make_engine(gpt2), ["a"] * 6)

    def sample(seed: int) -> list[tuple[int, ...]]:
        made = ids_of(make_engine(gpt2, generation=SAMPLING, seed=seed), prompts)
        return [tuple(ids) for ids in made.values()]

    first = sample(0)
    assert len(set(first)) == 6  # one prompt, six rows
    assert sample(0) == first
    assert not set(sample(1)) & set(first)


def test_the_noise_gives_samples_of_the_softmax() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0, -2.0, -float("inf")])
    rows = 20_000
    noise = GumbelNoise(7, range(rows), torch.device("cpu"))
    for _ in range(2):  # a second step draws other numbers of the same streams
        chosen = noise(None, logits.expand(rows, -1)).argmax(dim=-1)
        found = torch.bincount(chosen, minlength=6) / rows
        expected = logits.softmax(dim=-1)
        sigma = (expected * (1 - expected) / rows).sqrt()
        assert ((found - expected).abs() <= 4.5 * sigma).all()


def test_the_noise_is_finite_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([0.0, 1 - 2.0**-24])  # the least and the most that uniform_ gives

    def end(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return tensor.fill_(next(ends))

    monkeypatch.setattr(torch.Tensor, "uniform_", end)
    scores = GumbelNoise(0, [0, 1], torch.device("cpu"))(None, torch.zeros(2, 3))
    assert torch.isfinite(scores).all()
    assert scores[0, 0] > 15
    assert scores[1, 0] < -2


@pytest.mark.parametrize(
    "shape",
    [
        {"top_k": 3},
        {"top_k": 0, "top_p": 0.4},
        {"min_p": 0.3, "temperature": 1.5},
        {"temperature": 0.3, "top_k": 5, "repetition_penalty": 1.5},
    ],
    ids=str,
)
def test_warpers_come_first(gpt2: Path, shape: dict[str, Any]) -> None:
    from transformers import AutoModelForCausalLM

    engine = make_engine(gpt2, generation=SAMPLING | shape)
    prompts = prompts_of(engine, PROMPTS)
    made = ids_of(engine, prompts)
    model = AutoModelForCausalLM.from_pretrained(gpt2).eval()
    for prompt in prompts:
        for step, token in enumerate(made[prompt.row]):
            # what transformers itself leaves to be sampled at this step
            scores = model.generate(
                torch.tensor([prompt.ids + made[prompt.row][:step]]),
                max_new_tokens=1,
                do_sample=True,
                pad_token_id=1,
                output_scores=True,
                return_dict_in_generate=True,
                **({"top_k": 50} | shape),
            ).scores[0][0]
            assert torch.isfinite(scores[token])
            if step == 2:
                break


def test_a_low_temperature_is_greedy(gpt2: Path) -> None:
    cold = make_engine(gpt2, generation=SAMPLING | {"temperature": 1e-4})
    greedy = make_engine(gpt2)
    prompts = prompts_of(greedy, PROMPTS)
    assert ids_of(cold, prompts) == ids_of(greedy, prompts)


def test_no_two_rows_share_a_stream() -> None:
    for seed in (0, 1, -5, 2**40):
        streams = [stream_seed(seed, row) for row in range(50_000)]
        assert len({stream & 0xFFFFFFFF for stream in streams}) == len(streams)
        assert all(0 <= stream < 2**64 for stream in streams)
    heads = [[stream_seed(seed, row) for row in range(100)] for seed in range(100)]
    assert len(set(itertools.chain(*heads))) == 100 * 100
