"""A folder of scores as ``compare`` reads it: ids first, statistics when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import ScoresError, first_line
from pipeline.report.results import read_summary
from pipeline.score.buffers import filled, no_texts, one_array, to_numpy
from pipeline.score.metrics.base import Floats
from pipeline.score.ngrams import Integers
from pipeline.score.references import REFERENCES_HASH
from pipeline.store.chunk import chunk_index

_AGAIN = "score the predictions again with `twophase score`"


class Scored:
    """The scores in ``folder``.

    Attributes:
        name: the folder, as it was named.
        summary: the contents of ``summary.json``.
        ids: (rows,) Arrow strings, in the order of the files.
        rows: (rows,) row numbers.
        references: (rows,) hashes of the references.

    Raises:
        ScoresError: there are no scores, some of them are missing or damaged, or they were written
            by a version that did not record the references.
    """

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self.summary = read_summary(folder)
        self._paths = sorted(
            path for path in folder.iterdir() if chunk_index(path.name) is not None
        )
        tables = list(self._tables(["row", "id", REFERENCES_HASH]))
        # Offsets of 64 bits: the ids of all rows stand in one array.
        ids = [pc.cast(table.column("id"), pa.large_string()) for table in tables]
        self.ids = pa.concat_arrays([no_texts(), *map(one_array, ids)])
        self.rows = _concatenated(tables, "row")
        self.references = _concatenated(tables, REFERENCES_HASH)
        expected = self.summary["rows"]
        if len(self.rows) != expected:
            raise ScoresError(
                f"{folder} holds scores of {len(self.rows)} rows, but its summary.json says "
                f"{expected}; copy the folder again, or {_AGAIN}"
            )

    def columns(self, names: Sequence[str], place: Integers, rows: int) -> Floats:
        """(rows, len(names)) values of some columns; NaN where a score is undefined.

        Args:
            names: of statistics or scores.
            place: (rows of the set,) which row of the result each becomes; -1 leaves it out.
            rows: of the result.
        """
        values = np.empty((rows, len(names)))
        start = 0
        for table in self._tables(names):
            target = place[start : start + len(table)]
            start += len(table)
            kept = target >= 0
            for index, name in enumerate(names):
                values[target[kept], index] = filled(one_array(table.column(name)), np.nan)[kept]
        return values

    def _tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        for path in self._paths:
            try:
                file = pq.ParquetFile(path, page_checksum_verification=True)
                missing = set(columns) - set(file.schema_arrow.names)
                if missing:
                    raise ScoresError(
                        f"{path} has no column {min(missing)}: it was written by another version "
                        f"of score, or altered; {_AGAIN}"
                    )
                for group in range(file.num_row_groups):
                    yield file.read_row_group(group, columns=list(columns), use_threads=False)
            except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
                reason = first_line(error)
                raise ScoresError(
                    f"{path} cannot be read ({reason}); copy the folder again, or {_AGAIN}"
                ) from None


def _concatenated(tables: list[pa.Table], name: str) -> Integers:
    parts = [to_numpy(one_array(table.column(name))) for table in tables]
    return np.concatenate([np.empty(0, np.int64), *parts])
