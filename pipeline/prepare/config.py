"""The ``prepare`` section of params.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pipeline.config import Config


class PrepareConfig(Config, frozen=True):
    """Which rows are evaluated, and which columns mean what.

    Attributes:
        dataset: a hub name, a JSONL/CSV/TSV/Parquet file or a ``save_to_disk`` folder; None is the
            embedded default (docstrings of the standard library). What exists on this machine
            goes before a hub name.
        name: configuration of a hub data set.
        split: split of a hub data set or of a saved ``DatasetDict``; not looked at for a single
            file, a saved ``Dataset`` or the embedded default.
        input: column or columns that the prompt is made of; none may be null, NaN or infinite.
        references: column or columns with the references; a list column holds several, and those
            of several columns follow each other. Numbers become text. Among several, null (in
            CSV: an empty cell) is no further reference; an example without any is an error.
        id: column with a unique id, which becomes text; None takes the number of the row in the
            data set.
        keep: further columns to carry through to the scores; they may be null.
        limit: at most this many rows; None is all.
        seed: None takes the first ``limit`` rows; a number takes a sample of all rows that depends
            on it, in their order. Without effect where ``limit`` is None.
        streaming: read a hub data set as it comes, without downloading it: with ``limit`` and no
            ``seed`` only as far as needed, for one that is larger than the disk. With a seed all
            of it passes by, and the sample is the same as without streaming. What is on this
            machine is read a batch at a time anyway.
    """

    dataset: str | None = None
    name: str | None = None
    split: str | None = "test"
    input: str | tuple[str, ...] = "document"
    references: str | tuple[str, ...] = "summary"
    id: str | None = "id"
    keep: tuple[str, ...] = ()
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = 96
    seed: int | None = None
    streaming: bool = False
