"""What a model says of given labels: the best token and the log-likelihood at each of them.

Teacher-forced, as ``Trainer`` evaluates: one pass, in which each label sees those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.errors import ModelError
from pipeline.predict.head import OutputHead

MASKED = -100
SLICE = 256  # positions that the head runs over at a time


@dataclass(frozen=True, slots=True)
class LabelScore:
    """What the model says of one row's labels.

    Attributes:
        ids: the best token at each label that is not masked.
        nll: sum over those labels of −log softmax(logits)[label], in nats; 0.0 without labels.
        correct: at how many of them the best token is the label.
    """

    ids: list[int]
    nll: float
    correct: int


def scored_slices(
    logits_at: Callable[[slice], Any], targets: Any
) -> Iterator[tuple[slice, Any, Any, Any]]:
    """What logits say of labels, ``SLICE`` of them at a time, on the device.

    Args:
        logits_at: gives the logits of some of the positions.  # (positions, vocabulary) float32
        targets: the label at each position.  # (positions,) int64

    Yields:
        Which positions, the best token at each, the negative log-likelihood of its label in nats,
        and whether the two are the same.
    """
    import torch

    for start in range(0, len(targets), SLICE):
        part = slice(start, start + SLICE)
        logits = logits_at(part)
        target = targets[part].to(logits.device)
        best = logits.argmax(dim=-1)
        nll = torch.nn.functional.cross_entropy(logits, target, reduction="none")
        yield part, best, nll, best == target


class LabelScorer:
    """Scores labels after prompts.

    Args:
        model: a causal or an encoder–decoder language model in eval mode.
        kind: ``causal`` or ``seq2seq``.
        device: where the model's inputs go.
    """

    def __init__(self, model: Any, kind: str, device: Any = "cpu") -> None:
        self._model = model
        self._device = device
        self._causal = kind == "causal"
        self.head = OutputHead(model)

    def score(
        self,
        prompts: Sequence[list[int]],
        labels: Sequence[list[int]],
        starts: Sequence[int] | None = None,
    ) -> list[LabelScore]:
        """Scores of ``labels`` after ``prompts``, in order.

        Args:
            prompts: token ids, without padding, at least one each.
            labels: label ids; ``MASKED`` ones are not scored.
            starts: the first decoder token of each row; None lets the model shift the labels as it
                does in training. Causal models have none.

        Raises:
            ModelError: an encoder–decoder model that does not say how it shifts labels.
        """
        import torch

        inputs, targets = self._inputs(prompts, labels, starts)
        with torch.inference_mode():
            positions = self.head.positions(inputs)
            targets = targets.to(positions.device)
            wanted = targets != MASKED
            scored = self._score(positions[wanted], targets[wanted])
        counts = [sum(label != MASKED for label in row) for row in labels]
        rows = []
        for count in counts:
            row = [next(scored) for _ in range(count)]
            # In float64: a float32 sum of thousands of terms would lose digits.
            nll = sum((nll for _, nll, _ in row), 0.0)
            rows.append(
                LabelScore([best for best, _, _ in row], nll, sum(hit for _, _, hit in row))
            )
        return rows

    def _inputs(
        self,
        prompts: Sequence[list[int]],
        labels: Sequence[list[int]],
        starts: Sequence[int] | None,
    ) -> tuple[dict[str, Any], Any]:
        """The model's inputs, and (batch, length) labels at the positions that predict them."""
        if self._causal:
            # Position p predicts the token at p + 1. A masked label has no token to be seen: 0.
            seen = [[max(label, 0) for label in row] for row in labels]
            rows = [prompt + row for prompt, row in zip(prompts, seen, strict=True)]
            aligned = [
                [MASKED] * (len(prompt) - 1) + row + [MASKED]
                for prompt, row in zip(prompts, labels, strict=True)
            ]
        else:
            rows, aligned = list(prompts), list(labels)
        inputs = {
            "input_ids": self._padded(rows, 0),
            "attention_mask": self._padded([[1] * len(row) for row in rows], 0),
            "use_cache": False,
        }
        targets = self._padded(aligned, MASKED)
        if not self._causal:
            inputs["decoder_input_ids"] = self._decoder_inputs(targets, starts)
        return inputs, targets

    def _padded(self, rows: list[list[int]], fill: int) -> Any:
        """Rows padded on the right.  # (batch, longest) int64"""
        import torch

        width = max(1, *(len(row) for row in rows))
        filled = [row + [fill] * (width - len(row)) for row in rows]
        return torch.tensor(filled, device=self._device)

    def _decoder_inputs(self, targets: Any, starts: Sequence[int] | None) -> Any:
        import torch

        if starts is not None:
            first = torch.tensor(starts, device=targets.device)[:, None]
            return torch.cat([first, targets[:, :-1].clamp(min=0)], dim=1)
        shift = getattr(self._model, "prepare_decoder_input_ids_from_labels", None)
        if shift is None:
            raise ModelError(
                f"a {self._model.config.model_type} model does not say how its labels are shifted "
                "for its decoder, so it cannot be evaluated with forced labels"
            )
        return shift(labels=targets)

    def _score(self, positions: Any, targets: Any) -> Any:
        """(best token, negative log-likelihood, whether it is the target), position by position."""
        found: list[tuple[int, float, bool]] = []
        for _, best, nll, hits in scored_slices(
            lambda part: self.head.logits(positions[part]), targets
        ):
            found += zip(best.tolist(), nll.tolist(), hits.tolist(), strict=True)
        return iter(found)
