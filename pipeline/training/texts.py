"""The tokenizer of a trainer: references of labels, and how predictions become text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.errors import ConfigError
from pipeline.predict.labels import MASKED
from pipeline.predict.tokenizer import decode_options, tokenizer_json
from pipeline.store.card import DecodeOptions
from pipeline.training.kind import Kind

Rows = Sequence[np.ndarray[Any, np.dtype[np.int64]]]


class Texts:
    """Decodes with the trainer's tokenizer.

    Args:
        processing_class: of the trainer: a tokenizer, or a processor that has one.
        kind: what is evaluated.

    Attributes:
        tokenizer_json: for the prediction set; None where predictions are stored as text.
        decode: how phase two turns ids into text.

    Raises:
        ConfigError: there is no tokenizer.
    """

    def __init__(self, processing_class: Any, kind: Kind) -> None:
        tokenizer = getattr(processing_class, "tokenizer", processing_class)
        if not hasattr(tokenizer, "batch_decode") or not hasattr(
            tokenizer, "convert_ids_to_tokens"
        ):
            what = "none" if tokenizer is None else f"a {type(tokenizer).__name__}"
            raise ConfigError(
                f"the processing_class of this trainer is {what}, which decodes no text; give the "
                "trainer processing_class=tokenizer (or the whole processor), or the Recorder "
                "tokenizer=…"
            )
        self._tokenizer = tokenizer
        self._frames = kind.gives == "frames"
        self.tokenizer_json = None if self._frames else tokenizer_json(tokenizer)
        self.decode = DecodeOptions() if self._frames else decode_options(tokenizer)

    def references(self, labels: Rows) -> list[str]:
        """The text of each row's labels; ``MASKED`` ones are left out before they are decoded."""
        rows = [row[row != MASKED].tolist() for row in labels]
        # The labels of a CTC model are the letters themselves: a double one is no repeated frame.
        options = {"group_tokens": False} if self._frames else {}
        return self._decode(rows, **options)

    def predictions(self, ids: Sequence[list[int]]) -> list[str] | None:
        """The text of predicted ids, where it is stored; else None."""
        if self.tokenizer_json is not None:
            return None
        return self._decode(ids)

    def _decode(self, ids: Sequence[list[int]], **options: Any) -> list[str]:
        # What a blank is, and what an unknown letter looks like, is among the rules of a CTC
        # tokenizer, as everywhere where such models are evaluated.
        texts: list[str] = self._tokenizer.batch_decode(
            ids, skip_special_tokens=not self._frames, **options
        )
        return texts

    def end_ids(self, asked: Any) -> frozenset[int]:
        """Ids that end a generated text: what was asked of ``generate``, else the tokenizer's."""
        found = self._tokenizer.eos_token_id if asked is None else asked
        return frozenset(found if isinstance(found, list) else [] if found is None else [found])

    @property
    def pad_id(self) -> int | None:
        """What the trainer fills generated rows with."""
        pad: int | None = self._tokenizer.pad_token_id
        return self._tokenizer.eos_token_id if pad is None else pad
