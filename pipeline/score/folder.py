"""``scores/`` is replaced as a whole, or not at all, and nothing else is ever replaced by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import ScoresError
from pipeline.store import replace
from pipeline.store.chunk import chunk_index

SUMMARY = "summary.json"


@contextmanager
def replacing(scores: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``scores`` when the block ends without an error.

    Raises:
        ScoresError: ``scores`` holds something else than scores, or cannot be written.
    """
    check_target(scores)
    try:
        with replace.replacing(scores) as new:
            yield new
    except OSError as error:
        raise ScoresError(
            f"{scores} cannot be written: {error}; the scores that were there are untouched"
        ) from error


def check_target(scores: Path) -> None:
    """Refuse to replace what is not scores.

    Raises:
        ScoresError: ``scores`` is a file, or a folder that holds anything but scores.
    """
    if not scores.exists() or (scores.is_dir() and not any(scores.iterdir())):
        return
    if not scores.is_dir() or not (scores / SUMMARY).exists():
        raise ScoresError(
            f"{scores} exists and holds no {SUMMARY}, so it is not a folder of scores and is not "
            "replaced; name another one with --scores, or remove it"
        )
    for entry in sorted(scores.iterdir()):
        if entry.name != SUMMARY and chunk_index(entry.name) is None:
            raise ScoresError(
                f"{scores} holds {entry.name}, which score did not write and which would be lost; "
                "move it away, or name another folder with --scores"
            )
