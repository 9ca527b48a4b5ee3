"""Data sets that the ``datasets`` library reads: of the hub, and saved by ``save_to_disk``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.errors import DataError, listed, shown
from pipeline.hub import offline, quiet, unreachable_because
from pipeline.prepare.arrow import ArrowSource
from pipeline.prepare.source import BATCH_ROWS
from pipeline.prepare.stream import StreamSource

_REMEDY = "check prepare.dataset, name and split, or name a local file"


def open_hub(
    dataset: str,
    name: str | None,
    split: str | None,
    announce: Callable[[str], None],
    progress: bool,
) -> ArrowSource:
    """The data set ``dataset`` of the hub, through the library's cache.

    Without a network the copy in the cache is taken, and ``announce`` says so.

    Raises:
        DataError: not found, not allowed, no network, no such configuration or split.
    """
    from datasets import DatasetDict, load_dataset
    from datasets.exceptions import DatasetsError

    where = f"the hub's {dataset}" + (f" ({name})" if name else "")
    reason = unreachable_because()
    with quiet(), _bars(progress), offline() if reason else nullcontext():
        try:
            loaded = load_dataset(dataset, name, split=split)
        except (DatasetsError, OSError, ValueError, RuntimeError) as error:
            if reason is not None and isinstance(error, OSError):
                raise DataError(
                    f"{where} is not in the local cache and the hub cannot be reached ({reason}); "
                    "go online, or name a local file in prepare.dataset"
                ) from None
            raise DataError(f"{where} cannot be loaded: {_reason(error)}; {_REMEDY}") from None
    if reason is not None:
        announce(f"the hub cannot be reached ({reason}): {where} is taken from the local cache")
    if isinstance(loaded, DatasetDict):
        raise DataError(f"{where} has the splits {listed(loaded)}; name one in prepare.split")
    note = {"dataset": dataset, "name": name, "split": split, "commit": _commit(loaded)}
    return _source(loaded, where, None, note)


def open_stream(dataset: str, name: str | None, split: str | None, scratch: Path) -> StreamSource:
    """The data set ``dataset`` of the hub as a stream.

    Args:
        dataset: on the hub.
        name: its configuration.
        split: its split.
        scratch: folder for rows that wait.

    Raises:
        DataError: see ``open_hub``, but nothing in a cache helps without a network; a stream that
            breaks off is one, too, when it is read.
    """
    from datasets import IterableDatasetDict, load_dataset
    from huggingface_hub import HfApi

    where = f"the hub's {dataset}" + (f" ({name})" if name else "")
    reason = unreachable_because()
    if reason is not None:
        raise DataError(
            f"{where} cannot be streamed: the hub cannot be reached ({reason}); go online, set "
            "prepare.streaming to false if it is in the local cache, or name a local file in "
            "prepare.dataset"
        )
    commit = None
    with quiet():
        # Where there is none to be had, load_dataset says why, in its own words.
        with suppress(*_failures()):
            commit = HfApi().dataset_info(dataset).sha
        try:
            loaded = load_dataset(dataset, name, split=split, streaming=True, revision=commit)
        except _failures() as error:
            raise DataError(f"{where} cannot be loaded: {_reason(error)}; {_REMEDY}") from None
    if isinstance(loaded, IterableDatasetDict):
        raise DataError(f"{where} has the splits {listed(loaded)}; name one in prepare.split")
    note = {"dataset": dataset, "name": name, "split": split, "commit": commit}
    return stream_of(loaded, where, scratch, note)


def stream_of(dataset: Any, where: str, scratch: Path, note: dict[str, Any]) -> StreamSource:
    """An ``IterableDataset`` as a source."""

    def tables() -> Iterator[pa.Table]:
        if dataset.features is not None:
            yield from dataset.with_format("arrow").iter(batch_size=BATCH_ROWS)
            return
        # Of JSON and CSV each block has the types that its own rows suggest, and the library
        # cannot put two of different types into one batch.
        for batch in dataset.iter(batch_size=BATCH_ROWS):
            yield pa.table({name: pa.array(values) for name, values in batch.items()})

    return StreamSource(where, tables, _failures(), scratch, note)


def _failures() -> tuple[type[Exception], ...]:
    """What the libraries raise when the hub, the network or a file does not do."""
    from aiohttp import ClientError
    from datasets.exceptions import DatasetsError
    from huggingface_hub.errors import HfHubHTTPError

    # Its bases are the errors of the HTTP library, which changes from version to version.
    http = HfHubHTTPError.__bases__
    return (DatasetsError, OSError, ValueError, RuntimeError, ClientError, *http)


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
    missing = _missing_files(folder)
    if missing:
        raise DataError(
            f"{folder} lacks {listed(missing)}, part of the saved data set; copy the folder again"
        )
    try:
        loaded = load_from_disk(str(folder))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise DataError(
            f"{folder} cannot be loaded: {_reason(error)}; save or copy it again"
        ) from None
    if isinstance(loaded, DatasetDict):
        if split not in loaded:
            raise DataError(
                f"{folder} has no split {shown(split)}; it has {listed(loaded)}: name one in "
                "prepare.split"
            )
        return _source(loaded[split], f"{folder} ({split})", folder, {})
    return _source(loaded, str(folder), folder, {})


def _missing_files(folder: Path) -> list[str]:
    """Files that a saved data set names and ``folder`` does not hold, relative to it, sorted.

    Nothing of a note that cannot be read: the library says what is wrong with that.
    """
    parts = [folder]
    named = [folder / "dataset_info.json"]
    with suppress(OSError, ValueError, KeyError, TypeError):
        splits = json.loads((folder / "dataset_dict.json").read_text(encoding="utf-8"))["splits"]
        parts = [folder / str(split) for split in splits]
        named = [part / name for part in parts for name in ("dataset_info.json", "state.json")]
    for part in parts:
        with suppress(OSError, ValueError, KeyError, TypeError):
            state = json.loads((part / "state.json").read_text(encoding="utf-8"))
            named += [part / file["filename"] for file in state["_data_files"]]
    return sorted(str(path.relative_to(folder)) for path in named if not path.is_file())


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
