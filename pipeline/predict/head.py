"""A model's output head, run over a few positions at a time.

Logits are what fills the memory of ``Trainer.evaluate``: 256 tokens of GPT-2 are 51 MB of them,
and a softmax doubles that. A hook catches the input of the head and lets the model go on with its
first position alone; the head then runs over the positions that are wanted. What the model does to
the logits after its head is done here too, see ``finishing``. An architecture that is not known
there is tried without any, and compared with the model's own logits on the first batch; where they
differ, the model's are taken from then on, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.predict.finishing import FINISHING, plain


@contextmanager
def first_position_only(head: Any) -> Iterator[list[Any]]:
    """While it lasts, the module ``head`` runs over one position of each row.

    Yields a list to which each of its calls adds what it was to run over.
    """
    caught: list[Any] = []

    def catch(module: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        caught.append(arguments[0])
        return (arguments[0][:, :1], *arguments[1:])

    handle = head.register_forward_pre_hook(catch)
    try:
        yield caught
    finally:
        handle.remove()


class OutputHead:
    """The head of ``model``.

    Attributes:
        sliced: whether it runs by slices; False after a fall back to the model's own logits.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._head = model.get_output_embeddings()
        name = model.config.model_type
        self._finish = FINISHING.get(name, plain)
        self._trusted = name in FINISHING
        self.sliced = self._head is not None
        if self._head is None:
            self._fall_back("it names none")

    def positions(self, inputs: dict[str, Any]) -> Any:
        """Run the model; what ``logits`` is to be asked of.  # (batch, length, hidden size)"""
        if not self._trusted and self.sliced:
            self._compare(inputs)
        return self._hidden(inputs) if self.sliced else self._model(**inputs).logits

    def logits(self, positions: Any) -> Any:
        """Logits of some of the positions.  # (positions, vocabulary) float32"""
        if self.sliced:
            positions = self._finish(self._model, self._head(positions))
        return positions.float()

    def _hidden(self, inputs: dict[str, Any]) -> Any:
        with first_position_only(self._head) as caught:
            self._model(**inputs)
        (hidden,) = caught
        return hidden

    def _compare(self, inputs: dict[str, Any]) -> None:
        """Hold the slices against the model's own logits, on the first row."""
        import torch

        self._trusted = True
        row = {
            name: value[:1] if isinstance(value, torch.Tensor) else value
            for name, value in inputs.items()
        }
        expected = self._model(**row).logits[0].float()
        try:
            found = self.logits(self._hidden(row)[0])
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
            return self._fall_back(f"{type(error).__name__}: {error}")
        if found.shape != expected.shape:
            return self._fall_back(f"{tuple(found.shape)} in place of {tuple(expected.shape)}")
        # Half precision rounds a slice otherwise than the whole.
        tolerance = 1e-4 if self._model.dtype == torch.float32 else 2e-2
        difference = float((found - expected.to(found.device)).abs().max())
        if difference > tolerance * float(expected.abs().max()):
            return self._fall_back(f"they differ by {difference:.3g}")
        return None

    def _fall_back(self, why: str) -> None:
        self.sliced = False
        warnings.warn(
            f"the output head of this {self._model.config.model_type} model does not give its "
            f"logits ({why}), so they are built whole; where that does not fit into memory, lower "
            "predict.max_batch_tokens",
            stacklevel=2,
        )
