"""Whether a model's predictions depend on the rows beside a row, or before it.

Most models mask padding. A few recurrent ones do not look at the mask (RWKV), and a few keep
something in their modules from one call to the next (RecurrentGemma), without a word. So a short
prompt is tried alone, beside a longer one, and alone again.
"""

from __future__ import annotations

import copy
from typing import Any

from pipeline.errors import ModelError
from pipeline.predict.text import known_tokens

_WIDTH = 8  # tokens of the longer prompt
_STEPS = 2  # the second sees how a cache was filled
# How far logits may lie apart, relative to their spread: rounding, above all in half precision.
_TOLERANCE, _ROUGH_TOLERANCE = 1e-3, 0.2


def check_rows_alone(
    model: Any, device: Any, settings: Any, *, causal: bool, longest: int | None, batches: bool
) -> None:
    """Check that a prompt's logits are its own.

    Args:
        model: in eval mode.
        device: where its inputs go.
        settings: the ``GenerationConfig`` of the run.
        causal: prompts are padded on the left, else on the right.
        longest: most tokens that a prompt may have.
        batches: a batch may hold several rows.

    Raises:
        ModelError: says of which kind the model is, and what to set.
    """
    width = min(_WIDTH, longest or _WIDTH)
    if width < 2:
        return
    known = known_tokens(model) or width
    long = [place % known for place in range(width)]
    short = [long[-1]]
    fill = [settings.pad_token_id] * (width - 1)
    unseen, seen = [0] * (width - 1), [1]
    first = _logits(model, device, settings, [short], [seen])
    beside = None
    if batches:
        padded = fill + short if causal else short + fill
        mask = unseen + seen if causal else seen + unseen
        beside = _logits(model, device, settings, [padded, long], [mask, [1] * width])
    _logits(model, device, settings, [long], [[1] * width])
    again = _logits(model, device, settings, [short], [seen])
    rough = getattr(model, "is_quantized", False) or "float32" not in str(model.dtype)
    tolerance = _ROUGH_TOLERANCE if rough else _TOLERANCE
    name = model.config.model_type
    if (apart := _apart(first, again)) > tolerance:
        raise ModelError(
            f"a {name} model gives the same prompt other logits after another prompt (they differ "
            f"by {apart:.1%}): it keeps something from one call to the next, so predictions would "
            "depend on the rows before; use another model, or a version of transformers in which "
            "it does not"
        )
    if beside is not None and (apart := _apart(first, beside)) > tolerance:
        raise ModelError(
            f"a {name} model does not mask padding: beside a longer prompt it gives other logits "
            f"than alone (they differ by {apart:.1%}), so predictions would depend on the batch; "
            "set predict.max_batch_rows: 1"
        )


def _logits(
    model: Any, device: Any, settings: Any, rows: list[list[int]], mask: list[list[int]]
) -> list[tuple[Any, int]]:
    """The first row's logits at each step, before anything is done to them, and its new token."""
    import torch

    plain = copy.deepcopy(settings)
    plain.update(
        **{"max_new_tokens": _STEPS, "min_new_tokens": None, "min_length": None, "num_beams": 1},
        **{"do_sample": False, "eos_token_id": None, "early_stopping": False},
        **{"return_dict_in_generate": True, "output_logits": True},
    )
    with torch.inference_mode():
        output = model.generate(
            input_ids=torch.tensor(rows, device=device),
            attention_mask=torch.tensor(mask, device=device),
            generation_config=plain,
        )
    new = output.sequences[0, -len(output.logits) :].tolist()
    return [(logits[0].float(), token) for logits, token in zip(output.logits, new, strict=True)]


def _apart(expected: list[tuple[Any, int]], found: list[tuple[Any, int]]) -> float:
    """The largest distance of two rows of logits, relative; what one adds to all is no matter."""
    largest = 0.0
    for (one, token), (other, other_token) in zip(expected, found, strict=True):
        one, other = one - one.mean(), other - other.mean()
        largest = max(largest, float((one - other).norm() / one.norm().clamp(min=1e-9)))
        # A penalty looks at padding here, which `decoding` hides from it; so tokens, not logits.
        if token != other_token:
            break  # what follows is of other prompts
    return largest
