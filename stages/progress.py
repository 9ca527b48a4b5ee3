"""How a run goes on: a bar where a person looks at it, a line per chunk in a log."""

from __future__ import annotations

import sys
import time
from typing import Any

import click
from tqdm import tqdm

from pipeline.store.chunk import chunk_name


class Bar:
    """A tqdm bar over examples: time left, examples/s, tokens/s, memory.

    Rows of chunks that an earlier run finished count as done, not as done by this run.
    """

    def __init__(self) -> None:
        self._bar: tqdm[Any] | None = None
        self._new_tokens = 0
        self._memory_bytes = 0

    def begin(self, rows: int, done: int) -> None:
        self._bar = tqdm(total=rows, initial=done, unit="ex", desc="predict", mininterval=0.5)

    def batch(self, rows: int, new_tokens: int, memory_bytes: int | None) -> None:
        if self._bar is None:
            return
        self._new_tokens += new_tokens
        self._memory_bytes = memory_bytes or self._memory_bytes
        elapsed = self._bar.format_dict["elapsed"]
        speed = f"{self._new_tokens / elapsed:.1f} tokens/s, " if elapsed else ""
        self._bar.set_postfix_str(speed + gib(self._memory_bytes), refresh=False)
        self._bar.update(rows)

    def chunk(self, chunk: int, telemetry: dict[str, int | float | None]) -> None:
        if self._bar is not None:
            self._bar.refresh()

    def note(self, message: str) -> None:
        tqdm.write(message, file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class Log:
    """A line per chunk on stderr.

    Args:
        who: begins each line where several processes write into one log.
    """

    def __init__(self, who: str = "") -> None:
        self._who = who
        self._rows = self._done = self._made = 0
        self._started = time.monotonic()

    def begin(self, rows: int, done: int) -> None:
        self._rows, self._done, self._made = rows, done, 0
        self._started = time.monotonic()

    def batch(self, rows: int, new_tokens: int, memory_bytes: int | None) -> None:
        self._made += rows

    def chunk(self, chunk: int, telemetry: dict[str, int | float | None]) -> None:
        memory = telemetry["allocated_peak_bytes"] or telemetry["rss_peak_bytes"] or 0
        line = (
            f"{chunk_name(chunk)}: {telemetry['rows']} rows in {telemetry['elapsed_s']:.1f} s, "
            f"{telemetry['examples_per_s']:.2f} examples/s, "
            f"{telemetry['tokens_per_s']:.1f} tokens/s, peak {gib(memory)}"
        )
        if self._rows:
            seconds = time.monotonic() - self._started
            done = self._done + self._made
            left = tqdm.format_interval((self._rows - done) * seconds / max(self._made, 1))
            line += f"; {done} of {self._rows} rows, {left} left"
        self.note(line)

    def note(self, message: str) -> None:
        click.echo(self._who + message, err=True)

    def close(self) -> None:
        pass


def progress_for(rank: int, ranks: int) -> Bar | Log:
    """What suits stderr; ranks that share a terminal leave the bar to rank 0."""
    if sys.stderr.isatty() and rank == 0:
        return Bar()
    return Log(f"rank {rank}: " if ranks > 1 else "")


def gib(size_bytes: float) -> str:
    """``1.71 GiB``."""
    return f"{size_bytes / 2**30:.2f} GiB"
