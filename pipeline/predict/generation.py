"""``predict.generation`` over the model's own ``generation_config.json``.

What is not set (or null) stays as the model says, with one exception: sampling is off unless it
is asked for, because a score should not depend on a default in somebody's config file.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pipeline.errors import ConfigError, did_you_mean

# They only shape sampling; left over from the model's config they would do nothing but warn.
_SAMPLING_FIELDS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "top_h",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
)


def check_generation(requested: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are set, checked; needs transformers, but no model.

    Raises:
        ConfigError: an unknown field (names the close matches), no ``max_new_tokens``, or a
            request that cannot be met row by row.
    """
    from transformers import GenerationConfig

    known = [name for name in vars(GenerationConfig()) if not name.startswith("_")]
    for name in requested:
        if name not in known:
            raise ConfigError(
                f"predict.generation: unknown field '{name}'{did_you_mean(name, known)}"
            )
    fields = {name: value for name, value in requested.items() if value is not None}
    new_tokens = fields.get("max_new_tokens")
    if not isinstance(new_tokens, int) or isinstance(new_tokens, bool) or new_tokens < 1:
        raise ConfigError(
            f"predict.generation.max_new_tokens must be a number of at least 1, got {new_tokens}; "
            "there is no default, since it cuts every prediction"
        )
    if fields.get("do_sample"):
        raise ConfigError(
            "predict.generation.do_sample: sampling is not supported: what a row gets would "
            "depend on the rows beside it, and a resumed run would differ; leave it out"
        )
    if fields.get("num_return_sequences", 1) != 1:
        raise ConfigError(
            "predict.generation.num_return_sequences: one prediction per row is what metrics "
            "compare with the references; leave it out"
        )
    if fields.get("max_length") is not None:
        raise ConfigError("predict.generation.max_length counts the prompt too; use max_new_tokens")
    return fields


def generation_config(model: Any, tokenizer: Any, fields: Mapping[str, Any]) -> Any:
    """The ``GenerationConfig`` to generate with, and a pad token for models that have none.

    Args:
        model: its ``generation_config`` is the base.
        tokenizer: gives EOS where the model's config has none.
        fields: from ``check_generation``.

    Raises:
        ConfigError: a value that ``transformers`` refuses.
    """
    config = copy.deepcopy(model.generation_config)
    config.do_sample = False
    for name in _SAMPLING_FIELDS:
        setattr(config, name, None)
    config.max_length = None
    for name, value in fields.items():
        setattr(config, name, value)
    if config.eos_token_id is None:
        config.eos_token_id = tokenizer.eos_token_id
    if config.pad_token_id is None:
        config.pad_token_id = _padding(tokenizer, config.eos_token_id)
    try:
        config.validate()
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"predict.generation: {error}") from None
    return config


def _padding(tokenizer: Any, eos: int | list[int] | None) -> int:
    """Any id does, since padding is masked; one that means nothing is kinder to a reader."""
    if tokenizer.pad_token_id is not None:
        return int(tokenizer.pad_token_id)
    if isinstance(eos, list):
        return eos[0]
    return eos if eos is not None else 0
