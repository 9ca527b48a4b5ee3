"""``predict.generation`` over the model's own ``generation_config.json``.

What is not set (or null) stays as the model says, with one exception: sampling is off unless it
is asked for, because a score should not depend on a default in somebody's config file. When it is
asked for, the model's own temperature and the like stand until they are set.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pipeline.errors import ConfigError, did_you_mean

# What cannot be asked for, and why.
_REFUSED = {
    "max_length": "counts the prompt too; use max_new_tokens",
    "max_time": "would let the speed of the machine decide where a prediction ends; leave it out",
    "token_healing": "rewrites the prompt; leave it out",
    "return_dict_in_generate": "changes nothing that is stored; leave it out",
    "output_scores": "is not stored; predict.logprob: true stores their sum",
    "output_logits": "is not stored; predict.logprob: true stores their sum",
    "output_attentions": "is not stored; leave it out",
    "output_hidden_states": "is not stored; leave it out",
}
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
    least = fields.get("min_new_tokens")
    if isinstance(least, int) and least > new_tokens:
        raise ConfigError(
            f"predict.generation.min_new_tokens: {least} are more than max_new_tokens "
            f"({new_tokens}) lets a row have; lower it, or raise max_new_tokens"
        )
    for name, reason in _REFUSED.items():
        if fields.get(name):
            raise ConfigError(f"predict.generation.{name} {reason}")
    if fields.get("do_sample") and (fields.get("num_beams") or 1) > 1:
        raise ConfigError(
            "predict.generation: do_sample with num_beams > 1 draws beams for all rows of a batch "
            "at once, so a row's prediction would depend on its batch; set num_beams: 1"
        )
    for name in _SAMPLING_FIELDS:
        if name in fields and not fields.get("do_sample"):
            raise ConfigError(
                f"predict.generation.{name} shapes sampling only, and sampling is off; "
                "set do_sample: true, or leave it out"
            )
    if fields.get("num_return_sequences", 1) != 1:
        raise ConfigError(
            "predict.generation.num_return_sequences: one prediction per row is what metrics "
            "compare with the references; leave it out"
        )
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
    if not fields.get("do_sample"):
        for name in _SAMPLING_FIELDS:
            setattr(config, name, None)
    config.max_length = config.max_time = None
    for name, value in fields.items():
        if name.endswith("_token_id"):
            value = _token_ids(tokenizer, name, value)
        setattr(config, name, value)
    if config.eos_token_id is None:
        config.eos_token_id = tokenizer.eos_token_id
    if config.pad_token_id is None:
        config.pad_token_id = _padding(tokenizer, config.eos_token_id)
    try:
        config.validate()
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"predict.generation: {error}") from None
    _check_mode(config)
    return config


def rows_alone(config: Any, kind: str) -> str | None:
    """The field for which rows cannot share a batch, or None.

    These count or look at the ids before the new ones in a way that padding changes; what
    ``decoding`` can shield from padding is not among them.
    """
    fields: dict[str, float | None] = {
        "encoder_repetition_penalty": 1.0,
        "encoder_no_repeat_ngram_size": 0,
    }
    if kind == "causal":  # the ids before the new ones are a padded prompt
        fields |= {"min_length": 0, "forced_bos_token_id": None, "watermarking_config": None}
    for name, neutral in fields.items():
        if getattr(config, name, None) not in (None, neutral):
            return name
    return None


def _check_mode(config: Any) -> None:
    from transformers.generation import GenerationMode

    mode = config.get_generation_mode()
    if mode == GenerationMode.BEAM_SAMPLE:
        raise ConfigError(
            "predict.generation.do_sample: the model's own config asks for "
            f"{config.num_beams} beams, and sampled beams depend on the batch; set num_beams: 1"
        )
    if mode == GenerationMode.ASSISTED_GENERATION:
        raise ConfigError(
            "predict.generation asks for assisted generation, which takes one row at a time and "
            "gives the same tokens: batches are faster; leave its fields out"
        )
    if mode not in (
        GenerationMode.GREEDY_SEARCH,
        GenerationMode.SAMPLE,
        GenerationMode.BEAM_SEARCH,
    ):
        raise ConfigError(
            f"predict.generation asks for {mode.value}, which transformers only runs with code "
            "downloaded from the hub; use greedy search, beams or sampling"
        )
    if config.cache_implementation == "paged":
        raise ConfigError(
            "predict.generation.cache_implementation: 'paged' batches rows by itself, so a row's "
            "prediction would depend on others; leave it out"
        )


def _token_ids(tokenizer: Any, name: str, value: Any) -> Any:
    """``value`` with tokens (``__de__``) replaced by their ids."""
    if isinstance(value, list):
        return [_token_ids(tokenizer, name, element) for element in value]
    if not isinstance(value, str):
        return value
    known = tokenizer.get_vocab()
    if value not in known:
        raise ConfigError(
            f"predict.generation.{name}: '{value}' is not a token of the model's tokenizer; "
            "use an id, or one of its tokens"
        )
    return known[value]


def _padding(tokenizer: Any, eos: int | list[int] | None) -> int:
    """Any id does, since padding is masked; one that means nothing is kinder to a reader."""
    if tokenizer.pad_token_id is not None:
        return int(tokenizer.pad_token_id)
    if isinstance(eos, list):
        return eos[0]
    return eos if eos is not None else 0
