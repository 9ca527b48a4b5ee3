"""The processes that ``torchrun`` starts for one run, and what they tell each other.

They share a store of keys (``torch.distributed.TCPStore``), and nothing else: no process group, so
no collective can hang when one rank is done before another (PyTorch, "Distributed key-value
store"). Chunks are claimed from a counter. Under torchrun the store is the one its agent keeps;
where the environment was set by other means, rank 0 keeps it.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from pipeline.errors import ConfigError, RankError, first_line, shown
from pipeline.predict.config import PredictConfig

_CONNECT_SECONDS = 300
_POLL_SECONDS = 0.1
_BEAT_SECONDS = 5.0
# A rank says that it lives every few seconds, from a thread of its own; torchrun notices the end of
# a process on its own node, and this the end of another node.
_SILENT_SECONDS = 120.0


class KeyStore(Protocol):
    """What is needed of ``torch.distributed.Store``."""

    def set(self, key: str, value: str, /) -> None: ...
    def get(self, key: str, /) -> bytes: ...
    def check(self, keys: list[str], /) -> bool: ...
    def add(self, key: str, amount: int, /) -> int: ...


class Ranks:
    """This process among the ranks of one run. As a context, it tells the others of a failure.

    Args:
        store: what the ranks share.
        rank: number of this process in the run.
        size: number of processes.
        local_rank: number of this process on its node.
    """

    def __init__(self, store: KeyStore, rank: int, size: int, local_rank: int) -> None:
        self._store = store
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self._ended = threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self._others = (0, 0)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Ranks | None:
        """The ranks that this process is one of; None where it is alone.

        Raises:
            ConfigError: the environment names a rank, but not where the others are.
            RankError: they cannot be reached.
        """
        for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_PORT"):
            if not environ.get(name, "0").isdecimal():
                raise ConfigError(
                    f"{name} is set to {shown(environ[name])}, which is no number: start the ranks "
                    "with torchrun, or unset it to run alone"
                )
        if int(environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in environ:
            return None
        lacking = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in environ]
        if lacking:
            raise ConfigError(
                f"RANK and WORLD_SIZE are set, {' and '.join(lacking)} not: start the ranks with "
                "torchrun, or unset them to run alone"
            )
        from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined] # public

        rank, size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
        host, port = environ["MASTER_ADDR"], int(environ["MASTER_PORT"])
        by_agent = environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        try:
            tcp_store = TCPStore(
                host,
                port,
                is_master=rank == 0 and not by_agent,
                timeout=timedelta(seconds=_CONNECT_SECONDS),
                wait_for_workers=False,
                multi_tenant=True,
            )
        except (RuntimeError, ValueError) as error:
            raise RankError(
                f"rank {rank} cannot reach {host}:{port}: {first_line(error)}"
            ) from None
        # A restarted group must not hear what the one before it said.
        prefix = f"twophase/{environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
        local_rank = int(environ.get("LOCAL_RANK", "0"))
        return cls(PrefixStore(prefix, tcp_store), rank, size, local_rank)

    def placed(self, config: PredictConfig) -> PredictConfig:
        """``config`` with the device of this rank.

        Raises:
            ConfigError: this node has fewer devices than ranks, or more than one rank where
                ``device_map`` gives all devices to each.
        """
        if config.device_map is None:
            return msgspec.structs.replace(config, device=self.device(config.device))
        if self.local_rank:
            raise ConfigError(
                "predict.device_map spreads one model over all devices of a node: use "
                "--nproc-per-node 1, or set it to null for a whole model on each device"
            )
        return config

    def device(self, name: str) -> str:
        """The device of this rank: one each where ``name`` leaves it open.

        Raises:
            ConfigError: this node has fewer devices than ranks.
        """
        import torch

        for kind in ("cuda", "xpu"):
            module = getattr(torch, kind)
            if name not in ("auto", kind) or not module.is_available():
                continue
            if self.local_rank >= module.device_count():
                raise ConfigError(
                    f"rank {self.rank} has no device of its own: this node has "
                    f"{module.device_count()}; use --nproc-per-node {module.device_count()}, or "
                    f"share one: predict.device={kind}:0"
                )
            return f"{kind}:{self.local_rank}"
        return name

    def __enter__(self) -> Self:
        self._beating.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._beating.join()
        if error is not None:
            said = f"rank {self.rank} on {socket.gethostname()} failed: "
            said += str(error) or type(error).__name__
            # Where the store has ended, the others find that out by themselves.
            with suppress(RankError):
                if not self._call(lambda: self._store.check(["failed"])):
                    self.tell("failed", said)

    def tell(self, key: str, value: Any) -> None:
        """Set ``key`` for all ranks."""
        self._call(lambda: self._store.set(key, json.dumps(value)))

    def hear(self, key: str, teller: int, meanwhile: Callable[[], None] = lambda: None) -> Any:
        """Wait until rank ``teller`` has told ``key``.

        In steps, because a signal is not heard inside the store's own wait.

        Raises:
            RankError: a rank has failed, or ``teller`` has given no sign of life for minutes.
        """
        beat, since = None, time.monotonic()
        while not self._call(lambda: self._store.check([key])):
            if self._call(lambda: self._store.check(["failed"])):
                raise RankError(json.loads(self._call(lambda: self._store.get("failed"))))
            now = self._call(lambda: self._store.add(f"beat-{teller}", 0))
            if now != beat:
                beat, since = now, time.monotonic()
            elif time.monotonic() - since > _SILENT_SECONDS:
                raise RankError(
                    f"rank {teller} has given no sign of life for {_SILENT_SECONDS:.0f} s; run the "
                    "same command again: finished chunks are kept"
                )
            meanwhile()
            time.sleep(_POLL_SECONDS)
        return json.loads(self._call(lambda: self._store.get(key)))

    def claim(self, chunks: Sequence[int]) -> Iterator[int]:
        """Chunks for this rank, one after the other, until all ranks together have had all."""
        while True:
            number = self._call(lambda: self._store.add("claimed", 1)) - 1
            if number >= len(chunks):
                return
            yield chunks[number]

    def count(self, rows: int, new_tokens: int) -> None:
        """Add to what this rank and others have made together; see ``others``."""
        self._call(lambda: self._store.add("rows", rows))
        self._call(lambda: self._store.add("new_tokens", new_tokens))

    def others(self) -> tuple[int, int]:
        """Rows and new tokens counted since the last call."""
        rows = self._call(lambda: self._store.add("rows", 0))
        tokens = self._call(lambda: self._store.add("new_tokens", 0))
        before, self._others = self._others, (rows, tokens)
        return rows - before[0], tokens - before[1]

    def _beat(self) -> None:
        while not self._ended.is_set():
            try:
                self._store.add(f"beat-{self.rank}", 1)
            except RuntimeError:
                return  # the main thread finds the same
            self._ended.wait(_BEAT_SECONDS)

    def _call(self, operation: Callable[[], Any]) -> Any:
        try:
            return operation()
        except RuntimeError as error:
            raise RankError(
                f"rank {self.rank} has lost the others ({first_line(error)}); run the same command "
                "again: finished chunks are kept"
            ) from None
