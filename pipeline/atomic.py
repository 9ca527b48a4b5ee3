"""A final name means a complete file.

A file is written under a temporary name in the same folder, flushed to the disk, and renamed over
the final name, so that a reader (or a run that resumes) sees the old file, the new one, or none.
Temporary names are unique per process: two writers of one name do not meet in one temporary file,
and the last rename wins. Not covered: a power cut on a file system that reorders the rename
before the data although both were synced.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY_MARK = ".tmp-"


def temporary_path(path: Path) -> Path:
    """A name beside ``path`` that no other process uses; it starts with a dot."""
    return path.with_name(f".{path.name}{TEMPORARY_MARK}{os.getpid()}-{uuid.uuid4().hex[:8]}")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path; on success it becomes ``path``, on an error it is removed.

    A full disk does not say which file it was that did not fit: ``path`` is added to its error.
    """
    temporary = temporary_path(path)
    try:
        yield temporary
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically, making the folder where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Write ``content`` to ``path`` atomically as UTF-8 with ``\\n`` line ends."""
    write_bytes(path, content.encode("utf-8"))


def require_writable(path: Path) -> None:
    """Find out now, not after an hour's work, whether ``path`` can be written.

    Raises:
        OSError: it is a folder, or its folder is missing and cannot be made, or read-only, or full.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    temporary.touch()
    temporary.unlink()


def sync_folder(folder: Path) -> None:
    """Flush the folder's entries, where the system can (Windows cannot open a folder)."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
