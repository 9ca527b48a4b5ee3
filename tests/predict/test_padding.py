"""Models whose predictions depend on other rows are found out before the first chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ModelError
from tests.models import TEXTS, save_tokenizer
from tests.predict.engine import make_engine, prompts_of


def save_causal(folder: Path, name: str, **settings: Any) -> Path:
    """A tiny random model of the architecture ``name``, with the tokenizer of the other tests."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = save_tokenizer(folder)
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 16, "num_hidden_layers": 3}
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **sizes, pad_token_id=0, eos_token_id=1, **settings)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=0.3)
    model.save_pretrained(folder)
    return folder


def test_a_model_that_does_not_mask_padding_takes_one_row_at_a_time(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "rwkv", "rwkv", attention_hidden_size=16)
    with pytest.raises(ModelError, match=r"a rwkv model does not mask.*max_batch_rows: 1"):
        make_engine(folder)
    engine = make_engine(folder, max_batch_rows=1)
    (first, *_, last) = prompts_of(engine, TEXTS)
    before = engine.predict([first])[0].ids
    engine.predict([last])
    assert engine.predict([first])[0].ids == before


@pytest.mark.parametrize("rows", [1, 16])
def test_a_model_that_remembers_the_row_before_is_refused(tmp_path: Path, rows: int) -> None:
    folder = save_causal(
        tmp_path / "model",
        "recurrent_gemma",
        intermediate_size=32,
        num_attention_heads=2,
        head_dim=8,
        lru_width=16,
        attention_window_size=8,
    )
    with pytest.raises(ModelError, match="other logits after another prompt"):
        make_engine(folder, max_batch_rows=rows)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bloom", {"n_head": 2}),
        ("mamba", {"state_size": 8}),
        ("mistral", {"sliding_window": 4, "num_attention_heads": 2, "num_key_value_heads": 1}),
        ("mixtral", {"num_local_experts": 2, "num_attention_heads": 2, "num_key_value_heads": 1}),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_that_masks_padding_takes_batches(
    tmp_path: Path, name: str, settings: dict[str, Any], dtype: str
) -> None:
    engine = make_engine(save_causal(tmp_path / name, name, **settings), dtype=dtype)
    if dtype == "float32":
        prompts = prompts_of(engine, [*TEXTS, "a"])
        alone = [engine.predict([prompt])[0].ids for prompt in prompts]
        assert [row.ids for row in engine.predict(prompts)] == alone
