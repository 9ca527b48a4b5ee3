"""JSONL, CSV and Parquet: a field with the prediction, one or more with references.

A field that holds a list holds several references. Numbers become what Python prints, as in
prepare. In CSV an empty cell is an empty text, since CSV cannot tell it from a missing one; in the
others null is a missing value. Among several references a missing or (CSV) blank one is no further
reference; a row without any is an error, and so is a prediction that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow as pa

from pipeline.errors import ConfigError, DataError, listed, shown
from pipeline.ingest.examples import Examples
from pipeline.ingest.input import Input
from pipeline.prepare.delimited import open_delimited
from pipeline.prepare.jsonl import open_jsonl
from pipeline.prepare.parquet import open_parquet
from pipeline.prepare.source import Batch, Reading, Source
from pipeline.prepare.texts import text_of
from pipeline.schema import RESERVED_COLUMNS

Format = Literal["jsonl", "csv", "tsv", "parquet"]
SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}


@dataclass(frozen=True)
class Fields:
    """Which field means what; what ``prepare.roles.Wanted`` asks for.

    Attributes:
        hypothesis: field with the prediction.
        references: fields with references.
        id: field with the id; None numbers the rows.
        keep: fields carried through to the scores.

    Raises:
        ConfigError: a field named twice, or a kept one whose name the set needs.
    """

    hypothesis: str
    references: tuple[str, ...]
    id: str | None = None
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for option, names in (("--reference", self.references), ("--keep", self.keep)):
            for name in names:
                if names.count(name) > 1:
                    raise ConfigError(f"{option} names the field {shown(name)} twice")
        for name in self.carried:
            if name in RESERVED_COLUMNS:
                raise ConfigError(
                    f"--keep: {shown(name)} is the name of a column that this program writes; "
                    "rename the field in the file"
                )

    @property
    def texts(self) -> tuple[str, ...]:
        identifier = () if self.id is None else (self.id,)
        return tuple(dict.fromkeys((*identifier, self.hypothesis, *self.references)))

    @property
    def carried(self) -> tuple[str, ...]:
        """Kept fields without those that the set holds anyway under the name they have."""
        present = set()
        if self.id == "id":
            present.add("id")
        if self.hypothesis == "prediction":
            present.add("prediction")
        if self.references == ("references",):
            present.add("references")
        return tuple(name for name in self.keep if name not in present)

    @property
    def needed(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.texts, *self.carried)))

    @property
    def remedy(self) -> str:
        return "name its fields with --hypothesis, --reference, --id and --keep"


class FieldRows:
    """A file of rows with fields.

    Args:
        file: the file.
        format: its format; None goes by the suffix, and is JSONL for stdin.
        fields: which field means what.

    Raises:
        ConfigError: a suffix that is not known.
        DataError: a field that is not there, no rows, or a file that cannot be read.
    """

    def __init__(self, file: Input, format: Format | None, fields: Fields) -> None:
        self._file = file
        self._fields = fields
        self._format = format or format_of(file)
        self._reading: Reading = _open(file, self._format).read(fields, None)
        if not self.rows:
            raise DataError(f"{self.where} has no rows; there is nothing to ingest")

    @property
    def where(self) -> str:
        return self._file.where

    @property
    def files(self) -> Sequence[Input]:
        return (self._file,)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            "format": self._format,
            "file": self._file.sha256,
            "hypothesis": self._fields.hypothesis,
            "references": list(self._fields.references),
            "id": self._fields.id,
            "keep": list(self._fields.keep),
        }

    @property
    def rows(self) -> int:
        return self._reading.rows

    @property
    def keep(self) -> Sequence[pa.Field]:
        return self._reading.fields

    @property
    def id_field(self) -> str | None:
        return self._fields.id

    def examples(self) -> Iterator[Examples]:
        for batch in self._reading.batches:
            yield Examples(
                self._ids(batch),
                [self._prediction(batch, place) for place in range(batch.rows)],
                [self._references(batch, place) for place in range(batch.rows)],
                batch.carried,
            )

    def _ids(self, batch: Batch) -> list[str]:
        numbers = range(batch.start, batch.start + batch.rows)
        field = self._fields.id
        if field is None:
            return [str(number) for number in numbers]
        ids = []
        for number, value in zip(numbers, batch.texts[field], strict=True):
            try:
                ids.append(text_of(value))
            except ValueError as error:
                raise DataError(
                    f"{self.where} row {number}: the id in field {shown(field)} is {error}; give "
                    "every row an id, or leave --id out to number the rows"
                ) from None
        return ids

    def _prediction(self, batch: Batch, place: int) -> str:
        try:
            return text_of(self._value(batch, self._fields.hypothesis, place))
        except ValueError as error:
            raise DataError(
                f"{self.where} row {batch.start + place}: the prediction in field "
                f"{shown(self._fields.hypothesis)} is {error}; write an empty text where nothing "
                "was generated, or leave the row out"
            ) from None

    def _references(self, batch: Batch, place: int) -> list[str]:
        found: list[str] = []
        for name in self._fields.references:
            value = self._value(batch, name, place)
            for text in value if isinstance(value, list) else [value]:
                if text is None:
                    continue
                try:
                    found.append(text_of(text))
                except ValueError as error:
                    raise DataError(
                        f"{self.where} row {batch.start + place}: a reference in field "
                        f"{shown(name)} is {error}; write texts, or a list of texts"
                    ) from None
        if not found:
            raise DataError(
                f"{self.where} row {batch.start + place} has no reference (in "
                f"{listed(self._fields.references)}); fill it, or leave the row out"
            )
        if self._is_delimited and len(found) > 1:
            return [text for text in found if text.strip()] or found[:1]
        return found

    def _value(self, batch: Batch, name: str, place: int) -> Any:
        value = batch.texts[name][place]
        return "" if value is None and self._is_delimited else value

    @property
    def _is_delimited(self) -> bool:
        return self._format in ("csv", "tsv")


def format_of(file: Input) -> Format:
    """The format that the suffix says; stdin is JSONL."""
    if file.where == "stdin":
        return "jsonl"
    suffix = file.where[file.where.rfind(".") :].lower()
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"{file.where} is of no kind that is known ({', '.join(SUFFIXES)}); say which with "
            f"--format ({', '.join(get_args(Format))}), or pass plain text with --hypotheses"
        )
    return SUFFIXES[suffix]


def _open(file: Input, format: Format) -> Source:
    if format == "jsonl":
        return open_jsonl(file.path, file.where)
    if format == "parquet":
        return open_parquet(file.path, file.where)
    return open_delimited(file.path, "\t" if format == "tsv" else ",", file.where)
