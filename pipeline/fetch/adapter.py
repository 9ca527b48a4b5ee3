"""``data/model/adapter/``: links to a person's adapter, so that DVC sees when it was trained again.

params.yaml holds only its name (``predict.adapter``), and predict reads it from where it lies. The
links stand inside the model folder, which DVC watches; whoever loads the model looks at the files
of that folder alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from pipeline.local import link_file, local_path

FOLDER = "adapter"


def link_adapter(name: str | None, model: Path, announce: Callable[[str], None]) -> None:
    """Link the adapter called ``name`` into the folder ``model``.

    A hub id is not linked, and what is no adapter is left for predict to name. Where symbolic
    links cannot be made the files are copied, and ``announce`` says so.
    """
    folder = None if name is None else local_path(name)
    if folder is None or not folder.is_dir():
        return
    into = model / FOLDER
    into.mkdir()
    copied = False
    for file in sorted(folder.glob("adapter_*")):
        if not link_file(file, into / file.name):
            shutil.copy2(file, into / file.name)
            copied = True
    if copied:
        announce(
            f"symbolic links cannot be made here, so {folder} was copied: fetch again when it "
            "has changed (dvc repro --force fetch)"
        )
