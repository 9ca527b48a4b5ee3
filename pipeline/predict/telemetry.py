"""Time and memory of the making of one chunk; ``store.telemetry`` collects them."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from pipeline.predict.memory import DeviceMemory, ResidentPeak, resident_bytes


class ChunkMeter:
    """Context around the work of one chunk; ``entries`` are its telemetry afterwards.

    The caller counts ``rows``, ``batches``, tokens and ``oom_events`` on the way.
    "After" is measured when the cache was emptied, so that it shows what stays.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._resident = ResidentPeak()
        self.rows = self.batches = self.prompt_tokens = self.new_tokens = self.oom_events = 0
        self.entries: dict[str, int | float | None] = {}

    def __enter__(self) -> Self:
        self._memory.reset_peak()
        self._before = (resident_bytes(), self._memory.allocated(), self._memory.reserved())
        self._resident.__enter__()
        self._start = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        elapsed = time.perf_counter() - self._start
        self._resident.__exit__(kind, error, traceback)
        peak = self._memory.peak()
        self._memory.empty_cache()
        resident, allocated, reserved = self._before
        self.entries = {
            "rows": self.rows,
            "batches": self.batches,
            "prompt_tokens": self.prompt_tokens,
            "new_tokens": self.new_tokens,
            "oom_events": self.oom_events,
            "elapsed_s": round(elapsed, 3),
            "examples_per_s": round(self.rows / elapsed, 3),
            "tokens_per_s": round(self.new_tokens / elapsed, 3),
            "rss_before_bytes": resident,
            "rss_after_bytes": resident_bytes(),
            "rss_peak_bytes": self._resident.bytes,
            "allocated_before_bytes": allocated,
            "allocated_after_bytes": self._memory.allocated(),
            "allocated_peak_bytes": peak,
            "reserved_before_bytes": reserved,
            "reserved_after_bytes": self._memory.reserved(),
        }
