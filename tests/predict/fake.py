"""A deterministic engine: its tokens are a function of the prompt, and it can fail at a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import torch

from pipeline.predict.engine import Prediction
from pipeline.predict.memory import DeviceMemory
from pipeline.predict.prompt import Prompt
from pipeline.store.card import DecodeOptions
from tests.models import train_tokenizer


class FakeEngine:
    """Predicts a prompt's ids reversed; ``fail_at`` names a text on which it raises."""

    def __init__(self, fail_at: str | None = None, error: BaseException | None = None) -> None:
        self.new_tokens = 64
        self.max_rows: int | None = None
        self.optional: tuple[str, ...] = ()
        self.decode = DecodeOptions()
        self.memory = CountingMemory()
        self._tokenizer = train_tokenizer()
        self.tokenizer_json: str | None = self._tokenizer.to_str()
        self._fail = self._tokenizer.encode(fail_at).ids if fail_at else None
        self._error = error or RuntimeError("the machine fell over")
        self.batches: list[int] = []

    def prompts(self, examples: pa.Table) -> list[Prompt]:
        texts = examples.column("document").to_pylist()
        return [Prompt(self._tokenizer.encode(text).ids, truncated=False) for text in texts]

    def predict(self, batch: Sequence[Prompt]) -> list[Prediction]:
        self.batches.append(len(batch))
        if any(prompt.ids == self._fail for prompt in batch):
            raise self._error
        return [
            Prediction(prompt.ids[::-1], "eos", extra={"logprob": -len(prompt.ids)})
            for prompt in batch
        ]


class CountingMemory(DeviceMemory):
    """Counts how often the cache was emptied."""

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self.emptied = 0

    def empty_cache(self) -> None:
        self.emptied += 1


class Silent:
    """A progress that only remembers."""

    def __init__(self, on_chunk: Callable[[int], Any] | None = None) -> None:
        self.began: tuple[int, int] | None = None
        self.rows = 0
        self.chunks: list[int] = []
        self.notes: list[str] = []
        self._on_chunk = on_chunk

    def begin(self, rows: int, done: int) -> None:
        self.began = (rows, done)

    def batch(self, rows: int, new_tokens: int, memory_bytes: int | None) -> None:
        self.rows += rows

    def chunk(self, chunk: int, telemetry: dict[str, int | float | None]) -> None:
        self.chunks.append(chunk)
        if self._on_chunk is not None:
            self._on_chunk(chunk)

    def note(self, message: str) -> None:
        self.notes.append(message)
