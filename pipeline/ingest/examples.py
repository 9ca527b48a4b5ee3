"""What every kind of input becomes: texts of consecutive rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from pipeline.ingest.input import Input


@dataclass(frozen=True)
class Examples:
    """Some rows.

    Attributes:
        ids: one per row.
        predictions: one per row.
        references: one or more per row.
        kept: columns that go along.
    """

    ids: Sequence[str]
    predictions: Sequence[str]
    references: Sequence[Sequence[str]]
    kept: Mapping[str, pa.Array]


class Origin(Protocol):
    """Files to ingest, opened.

    Attributes:
        where: how messages name them.
        files: they, with their hashes.
        settings: all else that decides what the rows are, for the fingerprint.
        rows: how many there are.
        keep: fields of the kept columns.
        id_field: where the ids come from; None where rows are numbered.
    """

    @property
    def where(self) -> str: ...
    @property
    def files(self) -> Sequence[Input]: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def rows(self) -> int: ...
    @property
    def keep(self) -> Sequence[pa.Field]: ...
    @property
    def id_field(self) -> str | None: ...

    def examples(self) -> Iterator[Examples]:
        """The rows, in order; may be iterated once."""
