"""A model folder of the person's own: linked, file by file, so that retraining is noticed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from pipeline.errors import ModelError
from pipeline.fetch.files import check_model, model_files
from pipeline.local import link_file


def link_model(folder: Path, into: Path, announce: Callable[[str], None]) -> None:
    """Link the files of the model in ``folder`` into the empty folder ``into``.

    Optimizer states and other weights than those that transformers would load are left out.
    Where symbolic links cannot be made the files are copied, and ``announce`` says so.

    Raises:
        ModelError: no such folder, or no configuration, tokenizer or weights in it.
    """
    if not folder.exists():
        raise ModelError(
            f"fetch.model: there is no folder {folder}; a hub id is written owner/name, without a "
            "leading /, . or ~"
        )
    if not folder.is_dir():
        raise ModelError(
            f"fetch.model: {folder} is a file; name the folder that model.save_pretrained wrote"
        )
    check_model(folder, where=str(folder))
    copied = False
    for name in model_files(path.name for path in folder.iterdir() if path.is_file()):
        if not link_file(folder / name, into / name):
            shutil.copy2(folder / name, into / name)
            copied = True
    if copied:
        announce(
            f"symbolic links cannot be made here, so {folder} was copied: fetch again when it "
            "has changed (dvc repro --force fetch)"
        )
