"""Files with predictions and references → a sealed prediction set of texts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from pipeline import __version__
from pipeline.errors import ConfigError, DataError, shown
from pipeline.ingest.examples import Examples, Origin
from pipeline.ingest.fields import FieldRows, Fields, Format
from pipeline.ingest.input import STDIN, read_input
from pipeline.ingest.lines import Lines
from pipeline.ingest.out import check_target, new_set
from pipeline.ingest.writer import first_repeated, write_set
from pipeline.store.card import RunCard

CHUNK_ROWS = 16_384

Progress = Callable[[int, int], object]


def ingest_lines(
    hypotheses: str, references: tuple[str, ...], out: Path | str, **options: Any
) -> RunCard:
    """Ingest plain files, a text a line; see ``lines``.

    Args:
        hypotheses: file of the predictions; ``-`` is stdin.
        references: one or more files of references; at most one of all files is ``-``.
        out: folder or URL of the new set.
        options: see ``_ingest``.

    Raises:
        ConfigError: no file of references, or stdin named twice.
        DataError: a file that cannot be used, or files that do not fit together.
        PredictionSetError: ``out`` cannot be replaced or written.
    """
    names = (hypotheses, *references)
    if not references:
        raise ConfigError("no references: name one or more files with --reference")
    if names.count(STDIN) > 1:
        raise ConfigError("stdin (-) can be one of the files only")

    def open_files(scratch: Path, stdin: Callable[[], BinaryIO]) -> Origin:
        first, *others = (read_input(name, scratch, stdin) for name in names)
        return Lines(first, tuple(others))

    return _ingest(open_files, out, **options)


def ingest_fields(
    file: str, fields: Fields, out: Path | str, *, format: Format | None = None, **options: Any
) -> RunCard:
    """Ingest a file of rows with fields; see ``fields``.

    Args:
        file: JSONL, CSV, TSV or Parquet; ``-`` is stdin.
        fields: which field means what.
        out: folder or URL of the new set.
        format: None goes by the suffix, and is JSONL for stdin.
        options: see ``_ingest``.

    Raises:
        ConfigError: no reference field, or a file of an unknown kind.
        DataError: a file or a row that cannot be used; names the row.
        PredictionSetError: ``out`` cannot be replaced or written.
    """
    if not fields.references:
        raise ConfigError("no references: name one or more fields with --reference")

    def open_files(scratch: Path, stdin: Callable[[], BinaryIO]) -> Origin:
        return FieldRows(read_input(file, scratch, stdin), format, fields)

    return _ingest(open_files, out, **options)


def open_stdin() -> BinaryIO:
    """The stream that ``-`` means.

    Raises:
        DataError: this process was started without one.
    """
    if sys.stdin is None:
        raise DataError("stdin is closed; pipe the text in, or name a file")
    return sys.stdin.buffer


def _ingest(
    open_files: Callable[[Path, Callable[[], BinaryIO]], Origin],
    out: Path | str,
    *,
    chunk_rows: int = CHUNK_ROWS,
    overwrite: bool = False,
    progress: Progress = lambda rows, total: None,
    stdin: Callable[[], BinaryIO] = open_stdin,
) -> RunCard:
    """Write the rows to ``out``, which is sealed when it is complete; see ``out``.

    Args:
        open_files: gives the rows, with a folder to copy what cannot be read twice into.
        out: folder or URL of the new set.
        chunk_rows: rows per chunk.
        overwrite: replace a prediction set that is there.
        progress: is called with the number of rows that were just read, and of all rows.
        stdin: gives the stream that ``-`` means.
    """
    if chunk_rows < 1:
        raise ConfigError(f"--chunk-rows: expected 1 or more, got {chunk_rows}")
    check_target(out, overwrite=overwrite)
    with new_set(out, overwrite=overwrite) as folder:
        origin = open_files(folder.parent, stdin)
        card = RunCard.plan(
            inputs={"ingest": {**origin.settings, "chunk_rows": chunk_rows}},
            rows=origin.rows,
            chunk_rows=chunk_rows,
            versions={"twophase": __version__, "pyarrow": version("pyarrow")},
            prediction="text",
            keep=tuple(field.name for field in origin.keep),
        )
        hashes = write_set(folder, card, origin.keep, _counted(origin, progress))
        for file in origin.files:
            file.check_unchanged()
        twice = first_repeated(folder, card, hashes) if origin.id_field is not None else None
        if twice is not None:
            identifier, first, second = twice
            raise DataError(
                f"{origin.where}: rows {first} and {second} have the same id {shown(identifier)} "
                f"in field {shown(origin.id_field)}; make ids unique, or leave --id out to number "
                "the rows"
            )
    return card


def _counted(origin: Origin, progress: Progress) -> Iterator[Examples]:
    for batch in origin.examples():
        yield batch
        progress(len(batch.ids), origin.rows)
