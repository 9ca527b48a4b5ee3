"""``data/examples.parquet``, from whichever data set there is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from pipeline import atomic
from pipeline.errors import ConfigError, DataError
from pipeline.ids import IdHashes
from pipeline.local import local_path, remove
from pipeline.prepare.config import PrepareConfig
from pipeline.prepare.examples import Tally, to_examples
from pipeline.prepare.provenance import write_source
from pipeline.prepare.roles import Roles, roles_of
from pipeline.prepare.sample import sample
from pipeline.prepare.source import Reading, Source
from pipeline.prepare.stream import StreamSource
from pipeline.prepare.writer import check_unique, write_examples
from pipeline.schema import examples_schema

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class PreparedData:
    """What was written.

    Attributes:
        where: the data set, as messages name it.
        tally: number of examples and of references.
        columns: all columns of examples.parquet.
    """

    where: str
    tally: Tally
    columns: tuple[str, ...]


def prepare(
    config: PrepareConfig,
    target: Path,
    source_target: Path,
    *,
    announce: Callable[[str], None] = lambda message: None,
    progress: bool = False,
) -> PreparedData:
    """Write the data set as ``target``, and what it was made from as ``source_target``.

    The rows are the first ``config.limit``, or with a seed a sample of them all in their order;
    ``row`` numbers what was written, from 0. Without an id column the id is the row's number in
    the data set, which a sample does not change. A batch of rows is held at a time, and 8 bytes
    for each id. ``target`` appears complete, in one rename.

    Args:
        config: the ``prepare`` section.
        target: ``data/examples.parquet``.
        source_target: ``data/source``; see ``provenance``.
        announce: is called with a line about what a person should know.
        progress: let the datasets library draw its bars on stderr.

    Raises:
        ConfigError: settings that exclude each other, or a reserved column name.
        DataError: no such data set, file, split or column; no rows; a row that will not do.
    """
    roles = roles_of(config)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = atomic.temporary_path(target)
    source = open_source(config, scratch, announce=announce, progress=progress)
    if source.path is not None:
        _check_not_ours(source.path, (target, source_target))
    try:
        return _write(config, roles, source, target, source_target, announce)
    finally:
        remove(scratch)


def _write(
    config: PrepareConfig,
    roles: Roles,
    source: Source,
    target: Path,
    source_target: Path,
    announce: Callable[[str], None],
) -> PreparedData:
    reading, numbers = _read(source, roles, config)
    if reading.rows == 0:
        raise DataError(f"{source.where} has no rows; there is nothing to evaluate")
    schema = examples_schema(reading.fields, roles.inputs, roles.keep)
    tally, hashes = Tally(), IdHashes()

    def counted() -> Iterator[pa.RecordBatch]:
        examples = to_examples(reading.batches, numbers, roles, schema, source.where)
        for batch, references in examples:
            tally.add(references)
            hashes.add(batch.column("id").to_pylist())
            yield batch

    with atomic.atomic_path(target) as temporary:
        write_examples(temporary, schema, counted())
        if roles.id is not None:
            check_unique(temporary, hashes, numbers, source.where, roles.id)
        write_source(source, source_target, announce)
    return PreparedData(source.where, tally, tuple(schema.names))


def _read(source: Source, roles: Roles, config: PrepareConfig) -> tuple[Reading, list[int] | None]:
    """The rows to write, and their numbers in the data set where they are a sample."""
    if config.seed is None or config.limit is None:
        return source.read(roles, config.limit), None
    if isinstance(source, StreamSource):
        return source.sample(roles, config.limit, config.seed)
    reading = source.read(roles, None)
    if reading.rows <= config.limit:
        return reading, None
    return reading, sample(range(reading.rows), config.limit, config.seed)


def open_source(
    config: PrepareConfig,
    scratch: Path,
    *,
    announce: Callable[[str], None] = lambda message: None,
    progress: bool = False,
) -> Source:
    """The data set that ``config`` names; ``config.split`` is not looked at for a single file.

    Args:
        config: the ``prepare`` section.
        scratch: a folder that a stream may make for its rows, and the caller removes.
        announce: is called with a line about what a person should know.
        progress: let the datasets library draw its bars on stderr.

    Raises:
        ConfigError: an empty name, or ``prepare.name`` for what is not of the hub.
        DataError: no such file or folder, or one of a kind that is not known.
    """
    from pipeline.prepare import delimited, docstrings, hub, jsonl, parquet

    if config.dataset is not None and not config.dataset.strip():
        raise ConfigError("prepare.dataset is empty; write null for the default data set")
    path = None if config.dataset is None else local_path(config.dataset, SUFFIXES)
    if config.name is not None and (config.dataset is None or path is not None):
        raise ConfigError(
            f"prepare.name is '{config.name}', but only a data set of the hub has configurations: "
            "set it to null"
        )
    if config.dataset is None:
        return docstrings.open_docstrings()
    if path is None and config.streaming:
        return hub.open_stream(config.dataset, config.name, config.split, scratch)
    if path is None:
        return hub.open_hub(config.dataset, config.name, config.split, announce, progress)
    if not path.exists():
        raise DataError(
            f"prepare.dataset: there is no file or folder {path}; a hub name is written "
            "owner/name, without a leading /, . or ~"
        )
    if not os.access(path, os.R_OK):
        raise DataError(f"prepare.dataset: {path} may not be read; check its permissions")
    if path.is_dir():
        return hub.open_saved(path, config.split)
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson", ".json"):
        return jsonl.open_jsonl(path)
    if suffix in (".csv", ".tsv"):
        return delimited.open_delimited(path, "\t" if suffix == ".tsv" else ",")
    if suffix == ".parquet":
        return parquet.open_parquet(path)
    raise DataError(
        f"prepare.dataset: {path} is of no kind that is known ({', '.join(SUFFIXES)}, or a folder "
        "that save_to_disk wrote)"
    )


def _check_not_ours(path: Path, targets: tuple[Path, ...]) -> None:
    if os.path.abspath(path) in {os.path.abspath(target) for target in targets}:
        raise ConfigError(
            f"prepare.dataset: {path} is what prepare writes; name the original, or null"
        )
