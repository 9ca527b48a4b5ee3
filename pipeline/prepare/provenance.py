"""``data/source``: what the examples were made from, so that DVC sees when it has changed.

A person's file is outside the project or not under DVC, and params.yaml holds only its name. So
prepare has a second output (``cache: false`` in dvc.yaml): a link to the file, or a folder of
links to the files of a saved data set. DVC hashes through links; when the content has changed under
the same name, it runs prepare again. For what is not a person's file, a note in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from pipeline import atomic
from pipeline.local import link_file, new_folder, put, remove
from pipeline.prepare.source import Source


def write_source(source: Source, target: Path, announce: Callable[[str], None]) -> None:
    """Make ``target`` say what ``source`` is, replacing what was there.

    Where symbolic links cannot be made, it is a note with the path, and ``announce`` says that a
    change will not be noticed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.path is None:
        _write_note(dict(source.note), target)
    elif not _link(source.path, target):
        _write_note({"dataset": str(source.path)}, target)
        announce(
            f"symbolic links cannot be made here, so DVC will not notice when {source.path} "
            "changes: prepare again then (dvc repro --force prepare)"
        )


def _write_note(note: dict[str, str | None], target: Path) -> None:
    temporary = atomic.temporary_path(target)
    temporary.write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
    put(temporary, target)


def _link(path: Path, target: Path) -> bool:
    """Link to a file, or to every file of a folder; False where links cannot be made."""
    if path.is_dir():
        return _link_folder(path, target)
    temporary = atomic.temporary_path(target)
    try:
        if not link_file(path, temporary):
            return False
        put(temporary, target)
    finally:
        remove(temporary)
    return True


class _NoLinksError(Exception):
    pass


def _link_folder(folder: Path, target: Path) -> bool:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    try:
        with new_folder(target) as into:
            for path in files:
                link = into / path.relative_to(folder)
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link_file(path, link):
                    raise _NoLinksError
    except _NoLinksError:
        return False
    return True
