"""One evaluation on rank 0: gathered batches → a sealed prediction set."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pipeline import __version__, atomic
from pipeline.errors import DataError
from pipeline.predict.fingerprint import VERSIONED, versions_of
from pipeline.schema import chunk_schema
from pipeline.store.card import RunCard
from pipeline.training.columns import BatchColumns
from pipeline.training.kind import Kind, base_model
from pipeline.training.rows import DataRows
from pipeline.training.spool import CHUNK_ROWS, Spool, spooling
from pipeline.training.texts import Texts


def set_folder(directory: Path, prefix: str, step: int) -> Path:
    """``<directory>/<prefix>/step-00000500``, whatever characters the prefix has."""
    name = quote(prefix, safe="")
    if name.startswith("."):
        name = "%2E" + name[1:]
    return directory / name / f"step-{step:08d}"


@contextmanager
def recording(
    directory: Path,
    trainer: Any,
    kind: Kind,
    texts: Texts,
    data: DataRows,
    prefix: str,
    step: int,
) -> Iterator[Evaluation]:
    """Yield an evaluation whose set appears when the block ends without an error.

    Raises:
        PredictionSetError: it cannot be written.
    """
    with spooling(set_folder(directory, prefix, step)) as folder:
        text = texts.tokenizer_json is None
        card = RunCard.plan(
            inputs={"training": _inputs(trainer, kind, prefix, step)},
            rows=data.length or 0,
            chunk_rows=CHUNK_ROWS,
            versions={"twophase": __version__, **versions_of(VERSIONED)},
            prediction="text" if text else "ids",
            decode=texts.decode,
            optional=kind.optional,
            keep=tuple(field.name for field in data.fields),
        )
        schema = chunk_schema(text=text, optional=kind.optional, keep=data.fields)
        spool = Spool(folder, card, schema)
        if texts.tokenizer_json is not None:
            spool.add_tokenizer(_shared_tokenizer(directory, texts.tokenizer_json))
        yield Evaluation(spool, BatchColumns(kind, texts, trainer), data, prefix)


class Evaluation:
    """Takes batches as they are gathered.

    Args:
        spool: where they go.
        columns: makes columns of them.
        data: the rows of the data set.
        prefix: of the metrics, for messages.
    """

    def __init__(self, spool: Spool, columns: BatchColumns, data: DataRows, prefix: str) -> None:
        self._spool = spool
        self._columns = columns
        self._data = data
        self._prefix = prefix

    def add(self, outputs: tuple[Any, ...], labels: Any, last_rows: int | None) -> None:
        """Add a batch of all ranks, in the order of the data set.

        Args:
            outputs: see ``reduce``.
            labels: (batch, length) int64.
            last_rows: in the last batch, how many rows are no padding, where the loader knows.

        Raises:
            DataError: a batch has more rows than were read.
        """
        limit = self._data.batch_rows
        if limit is not None and len(labels) > limit:
            raise DataError(
                f"the evaluation '{self._prefix}' gave {len(labels)} rows of labels for a batch of "
                f"{limit} rows of the data set, so their ids are not known; let the collator make "
                "one row of each"
            )
        rows = len(labels) if last_rows is None else min(last_rows, len(labels))
        if self._data.length is not None:
            # Ranks that ran out of rows were given the first ones again.
            rows = min(rows, self._data.length - self._spool.rows)
        if rows > 0:
            made = self._columns.make(outputs, labels, rows)
            self._spool.add({**self._data.columns(self._spool.rows, rows), **made})

    def seal(self) -> None:
        """All batches are there.

        Raises:
            DataError: there were none, or too few.
        """
        if self._spool.rows == 0:
            raise DataError(
                f"the evaluation '{self._prefix}' gave no row with labels and predictions; the "
                "data set is empty or has no column of labels"
            )
        length, dropped = self._data.length, self._data.dropped
        if length is not None and dropped is not None and self._spool.rows < length - dropped:
            raise DataError(
                f"the evaluation '{self._prefix}' gave {self._spool.rows} rows with labels and "
                f"predictions for a data set of {length}, so their ids are not known; let every "
                "batch have labels, and the collator make one row of each"
            )
        self._spool.seal()


def _shared_tokenizer(directory: Path, content: str) -> Path:
    """One file for all evaluations: a tokenizer may take megabytes."""
    data = content.encode()
    path = directory / ".tokenizers" / f"{hashlib.sha256(data).hexdigest()[:16]}.json"
    if not path.exists():
        atomic.write_bytes(path, data)
    return path


def _inputs(trainer: Any, kind: Kind, prefix: str, step: int) -> dict[str, Any]:
    """What was asked of the evaluation. The weights are those of the step, and are not hashed."""
    arguments = trainer.args
    model = base_model(trainer.model)
    inputs: dict[str, Any] = {
        "task": kind.task,
        "gives": kind.gives,
        "prefix": prefix,
        "step": step,
        "model": type(model).__name__,
        "dtype": str(getattr(model, "dtype", "unknown")).removeprefix("torch."),
        "mixed_precision": trainer.accelerator.mixed_precision,
        "seed": arguments.seed,
        "batch_rows": arguments.eval_batch_size,
        "ranks": arguments.world_size,
        "chunk_rows": CHUNK_ROWS,
    }
    if kind.gives == "generated":
        asked = getattr(trainer, "_gen_kwargs", {})
        config = getattr(model, "generation_config", None)
        inputs["generation"] = {
            **({} if config is None else _plain(config.to_diff_dict())),
            **_plain(asked),
        }
    return inputs


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """What JSON has, as it is; anything else by its name."""
    simple = (str, int, float, bool, type(None))
    return {
        key: value
        if isinstance(value, simple)
        or (isinstance(value, list) and all(isinstance(entry, simple) for entry in value))
        else type(value).__name__
        for key, value in values.items()
        if key != "transformers_version"
    }
