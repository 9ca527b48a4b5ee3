"""Memory counters, without the devices: the calls that each kind of device gets."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pipeline.predict.memory import DeviceMemory, ResidentPeak, resident_bytes
from pipeline.predict.telemetry import ChunkMeter


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_cuda_and_xpu_count_and_are_emptied(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counter(name: str, value: int) -> Any:
        def call(device: torch.device) -> int:
            assert device.type == kind
            calls.append(name)
            return value

        return call

    fake = SimpleNamespace(
        memory_allocated=counter("allocated", 10),
        memory_reserved=counter("reserved", 30),
        max_memory_allocated=counter("peak", 20),
        reset_peak_memory_stats=counter("reset", 0),
        empty_cache=lambda: calls.append("empty"),
    )
    monkeypatch.setattr(torch, kind, fake)
    memory = DeviceMemory(torch.device(kind))
    with ChunkMeter(memory) as meter:
        meter.rows = 1
        assert calls == ["reset", "allocated", "reserved"]
    assert calls[3:] == ["peak", "empty", "allocated", "reserved"]  # "after" is after emptying
    assert meter.entries["allocated_peak_bytes"] == 20
    assert meter.entries["reserved_after_bytes"] == 30


def test_mps_counts_no_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    emptied: list[bool] = []
    fake = SimpleNamespace(
        current_allocated_memory=lambda: 10,
        driver_allocated_memory=lambda: 30,
        empty_cache=lambda: emptied.append(True),
    )
    monkeypatch.setattr(torch, "mps", fake)
    memory = DeviceMemory(torch.device("mps"))
    memory.reset_peak()
    memory.empty_cache()
    assert (memory.allocated(), memory.reserved(), memory.peak()) == (10, 30, None)
    assert emptied == [True]


def test_a_cpu_counts_nothing() -> None:
    memory = DeviceMemory(torch.device("cpu"))
    memory.reset_peak()
    memory.empty_cache()
    assert (memory.allocated(), memory.reserved(), memory.peak()) == (None, None, None)


def test_the_peak_sees_what_is_gone_at_the_end() -> None:
    with ResidentPeak() as peak:
        block = bytearray(200_000_000)
        block[::4096] = b"x" * len(block[::4096])  # touch every page
        time.sleep(0.1)
        del block
    assert peak.bytes > resident_bytes() + 100_000_000
