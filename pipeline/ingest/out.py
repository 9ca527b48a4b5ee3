"""Where an ingested set is put: a folder appears in one rename, a URL gets its seal last."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import PredictionSetError
from pipeline.store.card import RUN_CARD
from pipeline.store.place import Folder, open_place
from pipeline.store.prediction_set import SUMS
from pipeline.store.replace import NEW, replacing
from pipeline.store.upload import UrlTarget
from pipeline.store.url import Url


def check_target(out: Path | str, *, overwrite: bool) -> None:
    """Refuse to replace what is not a prediction set, and a set without ``overwrite``.

    What was begun at a URL and never sealed may be gone on with.

    Raises:
        PredictionSetError: ``out`` is there and is to stay.
        ObjectStoreError: it is a URL that cannot be read.
    """
    place = open_place(out)
    if isinstance(place, Folder) and place.path.is_dir() and not any(place.path.iterdir()):
        return
    names = place.sizes()
    if not names and not (isinstance(place, Folder) and place.path.exists()):
        return
    if RUN_CARD not in names:
        raise PredictionSetError(
            f"{out} exists and is not a prediction set; name another folder with --out, or "
            "remove it"
        )
    begun = not isinstance(place, Folder) and SUMS not in names
    if not overwrite and not begun:
        raise PredictionSetError(
            f"{out} holds a prediction set already; name another folder with --out, or pass "
            "--overwrite to replace it"
        )


@contextmanager
def new_set(out: Path | str, *, overwrite: bool) -> Iterator[Path]:
    """Yield an empty folder; what it holds at the end of the block is put at ``out``.

    Its parent is a scratch folder, removed at the end.

    Raises:
        PredictionSetError: ``out`` cannot be written.
    """
    place = open_place(out)
    try:
        if isinstance(place, Url):
            with tempfile.TemporaryDirectory(prefix="twophase-ingest-") as scratch:
                folder = Path(scratch, NEW)
                folder.mkdir()
                yield folder
                UrlTarget(place).upload(folder, overwrite=overwrite)
        else:
            with replacing(Path(str(place))) as folder:
                yield folder
    except OSError as error:
        raise PredictionSetError(f"{out} cannot be written: {error}") from error
