"""Files are there as a whole or not at all, and an error says which one it was."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from pipeline import atomic


def fill_the_disk(path: Path) -> None:
    """Fail as a write does: the handle does not know its name."""
    with atomic.atomic_path(path) as aside:
        aside.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")


def test_an_error_without_a_name_is_given_the_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(OSError, match="No space left") as caught:
        fill_the_disk(path)
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []
