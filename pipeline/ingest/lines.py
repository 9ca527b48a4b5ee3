"""Plain files: line n of the one is a prediction, line n of the others are its references.

Lines end at ``\\n`` or ``\\r\\n``, as in the files that sacreBLEU takes. Nothing else that Unicode
calls a line end (``\\r`` alone, U+0085, U+2028) separates texts. A last line need not have an end.

A blank line is an empty text. Where several files of references are given, a blank line in one of
them (empty, or white space only) is no further reference for that row; a row whose lines are all
blank keeps the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from pipeline.errors import DataError
from pipeline.ingest.examples import Examples
from pipeline.ingest.input import Input
from pipeline.prepare.rows import decode_line
from pipeline.prepare.source import BATCH_ROWS


@dataclass(frozen=True)
class Lines:
    """Files side by side.

    Attributes:
        hypotheses: the file of predictions.
        references: one or more files of references.

    Raises:
        DataError: the files have different numbers of lines, or none, or are not UTF-8.
    """

    hypotheses: Input
    references: tuple[Input, ...]

    def __post_init__(self) -> None:
        for file in self.references:
            if file.lines != self.rows:
                for each in (self.hypotheses, file):  # what is not UTF-8 was counted wrong
                    for _ in read_lines(each):
                        pass
                raise DataError(
                    f"{self.where} has {self.rows} lines, but {file.where} has {file.lines}: line "
                    "n of the one belongs to line n of the other; make the files anew"
                )
        if not self.rows:
            raise DataError(f"{self.where} has no lines; there is nothing to ingest")

    @property
    def where(self) -> str:
        return self.hypotheses.where

    @property
    def files(self) -> Sequence[Input]:
        return (self.hypotheses, *self.references)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            "format": "lines",
            "hypotheses": self.hypotheses.sha256,
            "references": [file.sha256 for file in self.references],
        }

    @property
    def rows(self) -> int:
        return self.hypotheses.lines

    @property
    def keep(self) -> Sequence[pa.Field]:
        return ()

    @property
    def id_field(self) -> str | None:
        return None

    def examples(self) -> Iterator[Examples]:
        rows = zip(*map(read_lines, self.files), strict=True)
        for start in range(0, self.rows, BATCH_ROWS):
            batch = list(islice(rows, BATCH_ROWS))
            yield Examples(
                [str(row) for row in range(start, start + len(batch))],
                [prediction for prediction, *_ in batch],
                [_without_blank(references) for _, *references in batch],
                {},
            )


def read_lines(file: Input) -> Iterator[str]:
    """The lines of ``file``, without their ends.

    Raises:
        DataError: a line is not UTF-8; names line and byte.
    """
    with file.path.open("rb") as handle:
        for number, content in enumerate(handle, 1):  # of bytes: they end at \n alone
            text = decode_line(file.where, number, content)
            if text.endswith("\r\n"):
                yield text[:-2]
            elif text:  # empty where the file is a byte order mark and nothing else
                yield text.removesuffix("\n")


def _without_blank(references: list[str]) -> list[str]:
    return [text for text in references if text.strip()] or references[:1]
