"""Places on this machine that params.yaml names, and links to the files that are there.

A folder of the person's is mirrored as a real folder of links, file by file, never as one link to
the folder: DVC hashes through both, so it notices when a file changes under the same name, but
before it reruns a stage it "removes" a linked folder by ``shutil.rmtree``, which refuses and whose
error handler then copies the link's own mode, 0777, to the person's folder (dvc-objects 5.2,
measured). Links to files are simply unlinked.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline import atomic


def local_path(name: str, suffixes: Iterable[str] = ()) -> Path | None:
    """The path that ``name`` means, whether or not it exists; None where it is a hub id.

    A path is what exists, or what can only be one: it begins with ``/``, ``.``, ``~`` or a drive,
    holds a backslash or more than one ``/``, or ends in ``/`` or one of ``suffixes``. What exists
    goes before a hub id of the same name.
    """
    path = Path(os.path.expanduser(name))
    only_a_path = re.match(r"[/.~]|[A-Za-z]:", name) or "\\" in name or name.count("/") > 1
    if only_a_path or name.endswith(("/", *suffixes)) or path.exists():
        return path
    return None


def link_file(source: Path, link: Path) -> bool:
    """Make ``link`` a symbolic link to the file ``source``; False where links cannot be made.

    The link is relative where ``source`` is, so that it survives what the path in params.yaml
    survives: a project moved together with its models, or a project moved alone.
    """
    absolute = os.path.abspath(source)
    relative = os.path.relpath(absolute, os.path.realpath(link.parent))
    try:
        os.symlink(absolute if source.is_absolute() else relative, link)
    except OSError:
        return False
    return True


def holds(outer: Path, inner: Path) -> bool:
    """Whether ``inner`` is ``outer`` or lies in it, links followed."""
    return inner.resolve().is_relative_to(outer.resolve())


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``target`` that takes its place when the block succeeds.

    On an error the folder is removed and ``target`` stays as it was. A kill leaves ``target`` as
    it was or, between the two renames, absent: never half-done.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = atomic.temporary_path(target)
    temporary.mkdir()
    try:
        yield temporary
        put(temporary, target)
    finally:
        remove(temporary)


def put(temporary: Path, target: Path) -> None:
    """Rename ``temporary`` to ``target`` and remove what was there."""
    old = atomic.temporary_path(target)
    if os.path.lexists(target):
        os.replace(target, old)
    os.replace(temporary, target)
    atomic.sync_folder(target.parent)
    remove(old)


def remove(path: Path) -> None:
    """Remove a file, a folder or a link (not what it points to); nothing there is fine."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
