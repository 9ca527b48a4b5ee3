"""Memory around one evaluation, as the trainer logs it."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from pipeline.predict.memory import DeviceMemory, ResidentPeak


class MemoryMeter:
    """Context around an evaluation; ``entries`` are its bytes afterwards.

    ``peak_memory_bytes`` is the device's peak of allocated memory where it counts one (CUDA, XPU),
    else the most resident memory of this process that was seen. Where the device counts, there are
    allocated and reserved memory before and after, too.
    """

    def __init__(self, device: Any) -> None:
        self._memory = DeviceMemory(device)
        self._resident: ResidentPeak | None = None
        self.entries: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._memory.reset_peak()
        self._note("before")
        if self._memory.peak() is None:
            self._resident = ResidentPeak()
            self._resident.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        peak = self._memory.peak()
        if self._resident is not None:
            self._resident.__exit__(kind, error, traceback)
            peak = self._resident.bytes
        assert peak is not None
        self._note("after")
        self.entries["peak_memory_bytes"] = peak

    def _note(self, when: str) -> None:
        for name, value in (
            ("allocated", self._memory.allocated()),
            ("reserved", self._memory.reserved()),
        ):
            if value is not None:
                self.entries[f"memory_{name}_{when}_bytes"] = value
