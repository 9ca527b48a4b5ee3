"""Where a prediction set lies: a folder, or a URL of an object store.

What reads a set asks its place for names, for the bytes of a small file, and for a local path of a
large one, and need not know which kind it is. A place pickles, so that workers open it themselves.
``url`` has the other kind; it is imported where there is a URL, and fsspec with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# s3://bucket/run, and chains such as simplecache::s3://bucket/run; not C:\run.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(://|::)")
_FILE_URL = re.compile(r"^(?:file|local)://(?=/)")


class Place(Protocol):
    """Where the files of a set are; printed, it is what the person called it."""

    def at(self, name: str) -> str:
        """Path or URL of ``name``, for messages."""

    def sizes(self) -> dict[str, int]:
        """Name -> bytes of all files; a file in a folder is called ``folder/file``.

        Empty where there is nothing.
        """

    def read(self, name: str) -> bytes:
        """The bytes of a small file.

        Raises:
            FileNotFoundError: there is none.
        """

    def local(self, name: str, sha256: str | None = None) -> AbstractContextManager[Path]:
        """A path on this machine at which ``name`` can be opened; it may be gone afterwards.

        Args:
            name: of the file.
            sha256: what its bytes should have, where that is known; it is not checked, but a copy
                that has it will do.

        Raises:
            FileNotFoundError: there is none.
        """

    def keeping(self, copies: Path | None) -> Place:
        """This place; what ``local`` has to fetch is kept in the folder ``copies``."""


@dataclass(frozen=True)
class Folder:
    """A folder of this machine."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def at(self, name: str) -> str:
        return str(self.path / name)

    def sizes(self) -> dict[str, int]:
        return dict(_walk(self.path)) if self.path.is_dir() else {}

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    @contextmanager
    def local(self, name: str, sha256: str | None = None) -> Iterator[Path]:
        yield self.path / name

    def keeping(self, copies: Path | None) -> Folder:
        return self


Where = Path | str | Place


def is_url(text: str) -> bool:
    """Whether ``text`` is a URL and not a path."""
    return _URL.match(text) is not None


def without_file_scheme(text: str) -> str:
    """``/set`` for ``file:///set``, and anything else as it is."""
    return _FILE_URL.sub("", text, count=1)


def open_place(where: Where) -> Place:
    """The place that a person means: a path, or a URL; ``file:///…`` is a path.

    Raises:
        MissingExtraError: a URL, and the packages that read it are not installed.
        ConfigError: a URL of an unknown kind.
    """
    if isinstance(where, str):
        where = without_file_scheme(where)
        if is_url(where):
            from pipeline.store.url import Url

            return Url.parse(where)
        where = Path(where)
    return Folder(where) if isinstance(where, Path) else where


def _walk(folder: str | Path, prefix: str = "") -> Iterator[tuple[str, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if entry.is_dir():
                    yield from _walk(entry.path, f"{prefix}{entry.name}/")
                else:
                    yield prefix + entry.name, entry.stat().st_size
            except FileNotFoundError:  # removed meanwhile, or a link to nowhere
                continue
