"""Data sets that the ``datasets`` library reads: of the hub, and saved by ``save_to_disk``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.errors import DataError, listed, shown
from pipeline.prepare.arrow import ArrowSource
from pipeline.prepare.source import BATCH_ROWS

_REMEDY = "check prepare.dataset, name and split, or name a local file"


def open_hub(dataset: str, name: str | None, split: str | None, progress: bool) -> ArrowSource:
    """The data set ``dataset`` of the hub, through the library's cache.

    Raises:
        DataError: not found, not allowed, no network, no such configuration or split.
    """
    from datasets import DatasetDict, load_dataset
    from datasets.exceptions import DatasetsError

    where = f"the hub's {dataset}" + (f" ({name})" if name else "")
    with _bars(progress):
        try:
            loaded = load_dataset(dataset, name, split=split)
        except (DatasetsError, OSError, ValueError, RuntimeError) as error:
            raise DataError(f"{where} cannot be loaded: {_reason(error)}; {_REMEDY}") from None
    if isinstance(loaded, DatasetDict):
        raise DataError(f"{where} has the splits {listed(loaded)}; name one in prepare.split")
    note = {"dataset": dataset, "name": name, "split": split, "commit": _commit(loaded)}
    return _source(loaded, where, None, note)


def open_saved(folder: Path, split: str | None) -> ArrowSource:
    """The data set that ``save_to_disk`` wrote to ``folder``.

    Args:
        folder: a saved ``Dataset`` or ``DatasetDict``.
        split: split of a ``DatasetDict``; a ``Dataset`` has none, so it is not looked at.

    Raises:
        DataError: not such a folder, no such split, or a damaged file.
    """
    from datasets import DatasetDict, load_from_disk

    if not any((folder / name).is_file() for name in ("dataset_dict.json", "state.json")):
        raise DataError(
            f"{folder} is a folder, but not one that save_to_disk of the datasets library wrote "
            "(no dataset_dict.json or state.json); name such a folder, or one file"
        )
    try:
        loaded = load_from_disk(str(folder))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise DataError(f"{folder} cannot be loaded: {_reason(error)}; save it again") from None
    if isinstance(loaded, DatasetDict):
        if split not in loaded:
            raise DataError(
                f"{folder} has no split {shown(split)}; it has {listed(loaded)}: name one in "
                "prepare.split"
            )
        return _source(loaded[split], f"{folder} ({split})", folder, {})
    return _source(loaded, str(folder), folder, {})


def _source(dataset: Any, where: str, path: Path | None, note: dict[str, Any]) -> ArrowSource:
    """``dataset`` as a source; its rows stay in the memory-mapped files that it is made of."""

    def iterate(columns: Sequence[str]) -> Iterator[pa.Table]:
        chosen = dataset.select_columns(list(columns)).with_format("arrow")
        yield from chosen.iter(batch_size=BATCH_ROWS)

    schema = dataset.features.arrow_schema
    return ArrowSource(where, schema, len(dataset), iterate, path, note)


def _commit(dataset: Any) -> str | None:
    """The commit that the rows came from, where the library's cache says it.

    A data set without a loading script is cached in a folder named by the commit of its files.
    """
    folders = {Path(file["filename"]).parent.name for file in dataset.cache_files}
    commits = [name for name in folders if re.fullmatch(r"[0-9a-f]{40}", name)]
    return commits[0] if len(commits) == 1 else None


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


@contextmanager
def _bars(wanted: bool) -> Iterator[None]:
    import datasets

    if wanted or datasets.are_progress_bars_disabled():
        yield
        return
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.enable_progress_bars()
