"""A batch's outputs as token ids and sums per row, on the device: nothing else leaves it.

What a trainer gathers over ranks is one tuple of tensors of a batch:

    ids     (batch, length) int64; ``MASKED`` where there is none
    facts   (batch, 2) int64: tokens of the prompt (frames, for audio), rows of the batch
    counts  (batch, 2) int64: label tokens, and at how many of them the best token is the label
    nll     (batch,) float64: sum of −log softmax(logits)[label], in nats

``counts`` and ``nll`` are there where the ids are the best tokens at labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.errors import ModelError
from pipeline.predict.labels import MASKED, scored_slices
from pipeline.training.kind import Kind


def count_inputs(inputs: dict[str, Any], outputs: Any, labels: Any, kind: Kind, model: Any) -> Any:
    """Tokens of each row's prompt, or frames of its audio, and rows of the batch.

    # (batch, 2) int64, on the device of the labels
    """
    import torch

    rows = len(labels)
    mask = inputs.get("attention_mask")
    seen = inputs.get("input_ids")
    if kind.gives == "frames":
        tokens = _frames(mask, rows, outputs.shape[1], model)
    elif mask is not None and mask.dim() == 2:
        tokens = mask.sum(dim=1)
    else:
        width = seen.shape[1] if seen is not None and seen.dim() == 2 else 0
        tokens = torch.full((rows,), width)
    tokens = tokens.to(labels.device).long()
    if kind == Kind("causal", "labels"):
        # Labels of a causal model are part of what it reads.
        tokens = (tokens - (labels != MASKED).sum(dim=1)).clamp(min=0)
    return torch.stack([tokens, torch.full_like(tokens, rows)], dim=1)


def _frames(mask: Any, rows: int, width: int, model: Any) -> Any:
    """How many frames each row has by itself, as the model's own loss counts them."""
    import torch

    if mask is None:
        return torch.full((rows,), width)
    for name in ("_get_feat_extract_output_lengths", "_get_subsampling_output_length"):
        count = getattr(model, name, None)
        if count is not None:
            return count(mask.sum(dim=-1)).clamp(min=0, max=width)
    raise ModelError(
        f"a {type(model).__name__} does not say how many frames it makes of how much audio, so "
        "the frames that padding brought cannot be told from those of the row; evaluate with "
        "per_device_eval_batch_size=1 and without attention_mask"
    )


def own_positions(positions: Any, labels: Any, model: Any) -> Any:
    """Without those that a learned prompt of PEFT puts before each row of a causal model."""
    config: Any = getattr(model, "active_peft_config", None)
    if config is not None and config.is_prompt_learning:
        beyond = positions.shape[1] - labels.shape[1]
        if beyond == config.num_virtual_tokens:
            return positions[:, beyond:]
    return positions


def reduce_frames(logits: Any, facts: Any) -> tuple[Any, ...]:
    """The best token of each frame of a row's own audio."""
    import torch

    places = torch.arange(logits.shape[1], device=logits.device)
    beyond = places[None, :] >= facts[:, :1].to(logits.device)
    return logits.argmax(dim=-1).masked_fill(beyond, MASKED), facts


def reduce_logits(logits: Any, labels: Any, *, causal: bool) -> tuple[Any, Any, Any]:
    """Ids, counts and likelihood of logits of a whole batch.

    Raises:
        ModelError: there are not as many positions as labels.
    """
    if logits.shape[:2] != labels.shape:
        raise ModelError(
            f"the model gives logits of shape {tuple(logits.shape)} for labels of shape "
            f"{tuple(labels.shape)}, so it is not known which belong together"
        )
    labels = shifted(labels) if causal else labels
    flat = logits.reshape(-1, logits.shape[-1])
    return score_labels(lambda places: flat[places].float(), labels.to(logits.device))


def shifted(labels: Any) -> Any:
    """Labels at the positions that predict them: p predicts the token at p + 1."""
    moved = labels.new_full(labels.shape, MASKED)
    moved[:, :-1] = labels[:, 1:]
    return moved


def score_labels(logits_at: Callable[[Any], Any], labels: Any) -> tuple[Any, Any, Any]:
    """Ids, counts and likelihood at the positions that have a label, a slice at a time.

    Args:
        logits_at: gives the logits at positions of the flattened batch.  # (positions, vocabulary)
        labels: ``MASKED`` where there is none.  # (batch, length) int64
    """
    import torch

    wanted = labels.flatten() != MASKED
    places = wanted.nonzero().squeeze(1)
    targets = labels.flatten()[places]
    ids = torch.full_like(wanted, MASKED, dtype=torch.int64)
    nll = torch.zeros_like(wanted, dtype=torch.float32)
    hits = torch.zeros_like(wanted)
    for part, best, loss, hit in scored_slices(lambda part: logits_at(places[part]), targets):
        here = places[part]
        ids[here], nll[here], hits[here] = (value.to(labels.device) for value in (best, loss, hit))
    counts = [flags.view(labels.shape).sum(dim=1) for flags in (wanted, hits)]
    return ids.view(labels.shape), torch.stack(counts, dim=1), _sum(nll.view(labels.shape))


def _sum(nll: Any) -> Any:
    """Per row, in float64 where the device has it: float32 would lose digits."""
    import torch

    return nll.sum(dim=1, dtype=torch.float32 if nll.device.type == "mps" else torch.float64)
