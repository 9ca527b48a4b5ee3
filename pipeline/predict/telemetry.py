"""Time and memory per chunk: recorded beside the chunks, and at the end ``data/telemetry.csv``.

They never enter the prediction set: the same tokens must be the same bytes.
"""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from pipeline import atomic
from pipeline.predict.memory import DeviceMemory, ResidentPeak, resident_bytes
from pipeline.store.work import WorkStore

COLUMNS = (
    "chunk",
    "rows",
    "batches",
    "prompt_tokens",
    "new_tokens",
    "elapsed_s",
    "examples_per_s",
    "tokens_per_s",
    "rss_before_bytes",
    "rss_after_bytes",
    "rss_peak_bytes",
    "allocated_before_bytes",
    "allocated_after_bytes",
    "allocated_peak_bytes",
    "reserved_before_bytes",
    "reserved_after_bytes",
)


class ChunkMeter:
    """Context around the work of one chunk; ``entries`` are its telemetry afterwards.

    The caller counts ``rows``, ``batches``, ``prompt_tokens`` and ``new_tokens`` on the way.
    "After" is measured when the cache was emptied, so that it shows what stays.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._resident = ResidentPeak()
        self.rows = self.batches = self.prompt_tokens = self.new_tokens = 0
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


def write_telemetry(store: WorkStore, path: Path) -> None:
    """Collect the chunks' telemetry into the CSV at ``path``, a line per chunk.

    A field is empty where the device does not count, or where the chunk was taken over from a
    set that came without its telemetry.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for chunk in range(store.card.chunks):
        writer.writerow({"chunk": chunk, **store.telemetry(chunk)})
    atomic.write_text(path, text.getvalue())
