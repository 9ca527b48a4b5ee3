"""Out of memory: which errors mean it, and the smaller budget to go on with.

An exception keeps the frames that it came through alive, and with them their tensors. So
``attempt`` says *that* a batch did not fit and lets the exception go; only then is the cache
emptied and half of the batch tried (PyTorch FAQ, "My out of memory exception handler can't allocate
memory").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.predict.config import PredictConfig
from pipeline.predict.engine import Engine, Prediction, Prompted
from pipeline.store.work import WorkStore

# Beside the chunks of a run that lasts; remove it to try the whole budget again.
BUDGET_FILE = "budget.json"

# What allocators say that have no exception class of their own.
_MESSAGES = re.compile(
    r"DefaultCPUAllocator: (can't allocate|not enough) memory"
    r"|\b(CUDA|HIP|XPU|MPS)\b.*out of memory"
    r"|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED"
    r"|UR_RESULT_ERROR_OUT_OF_(DEVICE|HOST)_MEMORY",
    flags=re.DOTALL,
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` says that the device, or the host, has no memory left."""
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and _MESSAGES.search(str(error)) is not None


def attempt(engine: Engine, batch: Sequence[Prompted]) -> list[Prediction] | None:
    """Predictions for ``batch``, or None where memory did not do; the exception is gone then."""
    try:
        return engine.predict(batch)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    return None


@dataclass(frozen=True, slots=True)
class Budget:
    """What a batch may hold at most; see ``batching.plan_batches``.

    Attributes:
        rows: rows.
        tokens: rows × (longest prompt + new tokens); None is no limit.
    """

    rows: int
    tokens: int | None

    def halved(self, rows: int, width: int) -> Budget:
        """The budget after a batch of ``rows`` rows (at least 2) of ``width`` tokens failed."""
        half = rows // 2
        return Budget(half, half * width)

    def __str__(self) -> str:
        tokens = "" if self.tokens is None else f", {self.tokens} tokens"
        return f"{self.rows} rows{tokens}"


def read_budget(store: WorkStore, config: PredictConfig) -> Budget:
    """The budget that an earlier process of this run ended with, or the one that is asked for."""
    note = store.note(BUDGET_FILE)
    rows, tokens = note.get("rows"), note.get("tokens")
    if isinstance(rows, int) and isinstance(tokens, int) and rows >= 1 and tokens >= 1:
        return Budget(rows, tokens)
    return Budget(config.max_batch_rows, config.max_batch_tokens)


def write_budget(store: WorkStore, budget: Budget) -> None:
    """Keep ``budget`` for the process that resumes."""
    store.write_note(BUDGET_FILE, {"rows": budget.rows, "tokens": budget.tokens})
