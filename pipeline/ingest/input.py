"""A file that is ingested: what messages call it, where it can be read twice, and its hash.

The fingerprint stands in every chunk, so all of the input is hashed before the first one is
written. Regular files are read where they are; stdin and pipes are copied to the disk first.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pipeline.errors import DataError

STDIN = "-"
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Input:
    """A file that was read once.

    Attributes:
        where: how messages name it.
        path: where it can be read again.
        sha256: of its bytes.
        lines: how many it has, at ``\\n``; a last one without a line end counts.
        modified_ns: when it was last modified, and
        size_bytes: how large it was when it was hashed.
    """

    where: str
    path: Path
    sha256: str
    lines: int
    modified_ns: int
    size_bytes: int

    def check_unchanged(self) -> None:
        """Raise ``DataError`` when the file is not the one that was hashed."""
        status = os.stat(self.path)
        if (status.st_mtime_ns, status.st_size) != (self.modified_ns, self.size_bytes):
            raise DataError(
                f"{self.where} changed while it was read; ingest it again when it is complete"
            )


def read_input(name: str, scratch: Path, stdin: Callable[[], BinaryIO]) -> Input:
    """Read ``name`` (``-`` is stdin) once.

    Args:
        name: a path, or ``-``.
        scratch: folder for a copy of what cannot be read twice.
        stdin: gives the stream.

    Raises:
        DataError: no such file, a folder, or one that may not be read.
    """
    if name == STDIN:
        copy = scratch / "stdin"
        with copy.open("wb") as target:
            digest, lines = _read(stdin(), target.write)
        return _described("stdin", copy, digest, lines)
    path = Path(name)
    try:
        with path.open("rb") as handle:
            if stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                status = os.fstat(handle.fileno())
                digest, lines = _read(handle)
                found = Input(name, path, digest, lines, status.st_mtime_ns, status.st_size)
                found.check_unchanged()
                return found
            copy = scratch / f"pipe-{len(list(scratch.iterdir()))}"
            with copy.open("wb") as target:
                digest, lines = _read(handle, target.write)
            return _described(name, copy, digest, lines)
    except FileNotFoundError:
        raise DataError(f"{name}: no such file") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror}") from None


def _described(where: str, path: Path, digest: str, lines: int) -> Input:
    status = os.stat(path)
    return Input(where, path, digest, lines, status.st_mtime_ns, status.st_size)


def _read(
    source: BinaryIO, write: Callable[[bytes], object] = lambda block: None
) -> tuple[str, int]:
    """The sha256 of all that ``source`` gives, and its number of lines."""
    digest = hashlib.sha256()
    lines, tail = 0, b""  # what stands after the last line end, as far as it matters
    while block := source.read(_BLOCK_BYTES):
        digest.update(block)
        write(block)
        lines += block.count(b"\n")
        line_end = block.rfind(b"\n")
        tail = (tail + block if line_end < 0 else block[line_end + 1 :])[:4]
    only_a_mark = lines == 0 and tail == codecs.BOM_UTF8
    return digest.hexdigest(), lines + bool(tail and not only_a_mark)
