"""A prediction set at a URL: any object store that fsspec reads.

Whatever goes wrong there is an ``ObjectStoreError``, but for a missing file, which is a
``FileNotFoundError``. ``filesystem`` opens the store and says its errors.

A put to an object store is there whole or not at all. Elsewhere (SFTP …) a file is written under
another name and renamed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pipeline import atomic
from pipeline.errors import ConfigError, ObjectStoreError, ScoresError
from pipeline.store.chunk import file_sha256
from pipeline.store.filesystem import (
    S3,
    error_code,
    failed,
    is_of_this_machine,
    open_filesystem,
    without_password,
)

_WHOLE_PUTS = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oci", "oss", "memory"}
_DIGITS = 32
_AT_ONCE = 16


@dataclass(frozen=True)
class Url:
    """What lies under ``url``; a ``place.Place`` that can be written.

    Attributes:
        url: without a slash at its end.
        copies: folder for copies of files whose sha256 is known, so that they are fetched once;
            None keeps none. It may be that of ``score.cache``, which removes what grows old.
    """

    url: str
    copies: Path | None = None

    @classmethod
    def parse(cls, url: str) -> Self:
        """Open ``url``, without asking the store for anything yet.

        Raises:
            MissingExtraError: what reads it is not installed.
            ConfigError: no such kind of URL, nothing behind the bucket's name, or a path.
        """
        found = cls(url.rstrip("/"))
        if found.url.endswith(":"):
            raise ConfigError(f"{url} names no set; s3://bucket/run is a URL that does")
        root = found._open()[1]
        if "file" in found._protocols:  # relative, or of another host: fsspec takes it for a path
            raise ConfigError(
                f"{found} is no URL of an object store; name the path without file://"
            )
        if found._protocols & {*S3, "gs", "gcs"}:
            prefix = root.partition("/")[2]
            if not prefix:
                raise ConfigError(
                    f"{found} names a bucket and nothing in it; name a prefix for the set, as "
                    f"{found}/run"
                )
            if prefix.startswith("/"):  # what is put there is not listed there
                raise ConfigError(
                    f"{found} has two slashes behind the bucket's name; leave one out"
                )
        return found

    def keeping(self, copies: Path | None) -> Self:
        """This place, with copies in ``copies``."""
        return replace(self, copies=copies)

    def __str__(self) -> str:
        return without_password(self.url)

    def at(self, name: str) -> str:
        return f"{self}/{name}"

    def sizes(self) -> dict[str, int]:
        files, root = self._open()
        with self._errors("listed"):
            files.invalidate_cache()
            try:
                found = files.find(root, detail=True)
            except FileNotFoundError as error:
                if error_code(error) == "NoSuchBucket":
                    raise
                return {}
        prefix = f"{root}/"
        return {
            path[len(prefix) :]: int(entry.get("size") or 0)
            for path, entry in found.items()
            if path.startswith(prefix) and path != prefix
        }

    def read(self, name: str) -> bytes:
        files, root = self._open()
        with self._errors("read"):
            content: bytes = files.cat_file(f"{root}/{name}")
        return content

    def read_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """``read`` of several, at the same time where the store can."""
        wanted = list(names)
        # Not fsspec's own cat of several, to which brackets in a name are a pattern.
        with ThreadPoolExecutor(_AT_ONCE if self._open()[0].async_impl else 1) as pool:
            return dict(zip(wanted, pool.map(self.read, wanted), strict=True))

    @contextmanager
    def local(self, name: str, sha256: str | None = None) -> Iterator[Path]:
        if self.copies is not None and sha256 is not None:
            yield self._copy(self.copies, name, sha256)
            return
        descriptor, path = tempfile.mkstemp(prefix="twophase-")
        os.close(descriptor)
        try:
            self._get(name, path)
            yield Path(path)
        finally:
            with suppress(OSError):  # open, on a system that does not remove open files
                os.unlink(path)

    def write(self, name: str, content: bytes, *, new: bool = False) -> None:
        """Write a small file.

        Args:
            name: of the file.
            content: its bytes.
            new: never replace one that is there.

        Raises:
            FileExistsError: it is there, and ``new``. (Stores that cannot say so in the same
                breath are asked before.)
        """
        files = self._open()[0]
        with self._errors("written"), self._target(name) as target:
            if new and target != self._path(name) and files.exists(self._path(name)):
                raise FileExistsError(self.at(name))
            files.pipe_file(target, content, mode="create" if new else "overwrite")

    def put(self, name: str, path: Path) -> None:
        """Copy the file at ``path`` there; ``name`` is there when it is whole."""
        files = self._open()[0]
        with self._errors("written"), self._target(name) as target:
            files.put_file(str(path), target)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, in this order; one that is gone is fine."""
        files = self._open()[0]
        for name in names:
            with self._errors("written"), suppress(FileNotFoundError):
                files.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._open()[1]}/{name}"

    @contextmanager
    def _target(self, name: str) -> Iterator[str]:
        """Yield the path to write to; what is written there becomes ``name``."""
        path = self._path(name)
        if self._protocols & _WHOLE_PUTS:
            yield path
            return
        files = self._open()[0]
        folder, _, last = path.rpartition("/")
        temporary = f"{folder}/{atomic.temporary_path(Path(last)).name}"
        files.makedirs(folder, exist_ok=True)
        try:
            yield temporary
            with suppress(FileNotFoundError):  # not every rename replaces
                files.rm_file(path)
            files.mv(temporary, path)
        except BaseException:
            with suppress(Exception):
                files.rm_file(temporary)
            raise

    def _copy(self, folder: Path, name: str, sha256: str) -> Path:
        path = folder / sha256[:_DIGITS] / f"copy-{sha256[:_DIGITS]}{Path(name).suffix}"
        with suppress(OSError):
            if file_sha256(path) == sha256:
                os.utime(path)
                return path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ScoresError(
                f"the cache {folder} cannot be written: {error}; name another folder with "
                "--cache, or score with --no-cache"
            ) from error
        with atomic.atomic_path(path) as temporary:
            self._get(name, str(temporary))
        return path

    def _get(self, name: str, path: str) -> None:
        files, root = self._open()
        with self._errors("read"):
            files.get_file(f"{root}/{name}", path)

    def _open(self) -> tuple[Any, str]:
        return open_filesystem(self.url)

    @property
    def _protocols(self) -> set[str]:
        names = self._open()[0].protocol
        return {names} if isinstance(names, str) else set(names)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if error_code(error) == "NoSuchBucket":
                raise ObjectStoreError(
                    f"{self} cannot be {what}: there is no such bucket; make it, or correct "
                    "the name (and AWS_ENDPOINT_URL, where the store is not Amazon's)"
                ) from None
            if isinstance(error, FileExistsError) or is_of_this_machine(error):
                raise
            if isinstance(error, FileNotFoundError) and what == "read":
                raise
            raise failed(self.url, what, error) from error
