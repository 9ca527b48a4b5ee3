"""Memory of the device and of this process, per chunk.

CUDA and XPU count allocated and reserved bytes and their peak; MPS counts both but no peak; a CPU
has no such counters, so the process's resident memory stands for it.
"""

from __future__ import annotations

import gc
import threading
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Self

import psutil

if TYPE_CHECKING:
    import torch

_SAMPLE_SECONDS = 0.02


class DeviceMemory:
    """Counters of one device; None where the device does not count."""

    def __init__(self, device: torch.device) -> None:
        import torch

        self._device = device
        self._counters: ModuleType | None = (
            getattr(torch, device.type) if device.type in ("cuda", "xpu") else None
        )
        self._mps: ModuleType | None = torch.mps if device.type == "mps" else None

    def allocated(self) -> int | None:
        """Bytes in tensors."""
        if self._counters is not None:
            return int(self._counters.memory_allocated(self._device))
        return int(self._mps.current_allocated_memory()) if self._mps is not None else None

    def reserved(self) -> int | None:
        """Bytes taken from the driver, the cache included."""
        if self._counters is not None:
            return int(self._counters.memory_reserved(self._device))
        return int(self._mps.driver_allocated_memory()) if self._mps is not None else None

    def peak(self) -> int | None:
        """Most bytes in tensors since ``reset_peak``."""
        if self._counters is None:
            return None
        return int(self._counters.max_memory_allocated(self._device))

    def reset_peak(self) -> None:
        """Start a new peak."""
        if self._counters is not None:
            self._counters.reset_peak_memory_stats(self._device)

    def empty_cache(self) -> None:
        """Give cached blocks back to the driver; nothing to do on a CPU.

        Between chunks only: emptied between batches, each batch pays for allocating anew.
        """
        gc.collect()
        if self._counters is not None:
            self._counters.empty_cache()
        elif self._mps is not None:
            self._mps.empty_cache()


class ResidentPeak:
    """Context that samples this process's resident memory; ``bytes`` is the most it saw."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.bytes = 0

    def __enter__(self) -> Self:
        self._measure()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        self._measure()

    def _measure(self) -> None:
        self.bytes = max(self.bytes, self._process.memory_info().rss)

    def _sample(self) -> None:
        while not self._done.wait(_SAMPLE_SECONDS):
            self._measure()


def resident_bytes() -> int:
    """Resident memory of this process now."""
    return int(psutil.Process().memory_info().rss)
