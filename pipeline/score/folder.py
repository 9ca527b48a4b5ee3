"""``scores/`` is replaced as a whole, or not at all, and nothing else is ever replaced by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import ScoresError
from pipeline.store import replace

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
        ScoresError: ``scores`` is a file, or a folder with content but without ``summary.json``.
    """
    if not scores.exists() or (scores / SUMMARY).exists():
        return
    if not scores.is_dir() or any(scores.iterdir()):
        raise ScoresError(
            f"{scores} exists and holds no {SUMMARY}, so it is not a folder of scores and is not "
            "replaced; name another one with --scores, or remove it"
        )
