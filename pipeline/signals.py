"""SIGTERM and Ctrl-C as exceptions that never interrupt a write.

While ``handled`` is on, a signal raises at once, wherever the main thread is: between two tokens
of a generation, say. Inside ``deferred`` it waits until the block is done. Python swallows what a
handler raises inside a finaliser (``Exception ignored in …``), so a loop calls ``check``, too.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """SIGTERM arrived. Not an ``Exception``: nothing on the way may handle it."""


_RAISED: dict[int, type[BaseException]] = {
    signal.SIGTERM: Terminated,
    signal.SIGINT: KeyboardInterrupt,
}


class _State:
    arrived: int | None = None
    deferring = 0


@contextmanager
def handled() -> Iterator[None]:
    """Raise ``Terminated`` on SIGTERM and ``KeyboardInterrupt`` on SIGINT; main thread only."""
    _State.arrived, _State.deferring = None, 0
    previous = {number: signal.signal(number, _arrive) for number in _RAISED}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _State.arrived = None


def _arrive(number: int, frame: FrameType | None) -> None:
    _State.arrived = number
    if not _State.deferring:
        raise _RAISED[number]


@contextmanager
def deferred() -> Iterator[None]:
    """Let a signal that arrives in this block take effect at its end. Other threads: no effect."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _State.deferring += 1
    try:
        yield
    finally:
        _State.deferring -= 1
    check()


def check() -> None:
    """Raise for a signal that has arrived and was not raised yet, or was swallowed."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and _State.arrived is not None and not _State.deferring:
        raise _RAISED[_State.arrived]
