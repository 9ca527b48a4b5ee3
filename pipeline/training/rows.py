"""Which rows of the data set an evaluation is of: their ids, in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipeline.errors import ConfigError, DataError, did_you_mean, shown
from pipeline.ids import IdHashes, hash_id
from pipeline.schema import RESERVED_COLUMNS

ID = "id"
# Ids are read a part at a time, so that they need not all be held.
_PART_ROWS = 65_536


class DataRows:
    """The rows of one evaluation.

    Args:
        dataset: what is evaluated. Columns are read from a ``datasets.Dataset`` only.
        keep: columns that go into the prediction set.
        numbers: the number of each row, where ``dataset`` is a sample of another.

    Attributes:
        source: the data set.
        length: how many rows it has; None is not known.
        order: positions in ``dataset`` in the order in which they come; None is as they stand.
        batch_rows: the most that a batch of all ranks can have; None is not known.
        dropped: the most that the loader may leave out at the end; None is not known.
        fields: of the kept columns.

    Raises:
        ConfigError: a kept column that is not there, or is called like one of the set's own.
        DataError: a column ``id`` in which an id stands twice, or that holds no texts or numbers.
    """

    def __init__(
        self, dataset: Any, keep: Sequence[str] = (), numbers: Sequence[int] | None = None
    ) -> None:
        self.source = dataset
        self._table = dataset.with_format("arrow") if _is_table(dataset) else None
        self._numbers = numbers
        self.order: Sequence[int] | None = None
        self.batch_rows: int | None = None
        self.dropped: int | None = None
        self.length: int | None = _length(dataset)
        names = [] if self._table is None else list(self._table.column_names)
        self._has_ids = ID in names
        self.fields = _kept_fields(self._table, names, keep)
        if self._has_ids:
            self._check_ids()

    def columns(self, start: int, rows: int) -> dict[str, pa.Array]:
        """``id`` and the kept columns of ``rows`` rows from the ``start``-th on."""
        stretch = range(start, start + rows)
        places = stretch if self.order is None else [self.order[place] for place in stretch]
        kept = self._read(places, [field.name for field in self.fields])
        if self._has_ids:
            ids = self._ids(places)
        else:
            numbers = self._numbers
            ids = pa.array(
                [str(place if numbers is None else numbers[place]) for place in places], pa.string()
            )
        return {ID: ids, **kept}

    def _read(self, places: Sequence[int], names: list[str]) -> dict[str, pa.Array]:
        if not names:
            return {}
        assert self._table is not None
        table = self._table.select_columns(names)[places]
        return {name: _flat(table.column(name)) for name in names}

    def _ids(self, places: Sequence[int]) -> pa.Array:
        ids = self._read(places, [ID])[ID]
        try:
            return ids.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(
                f"the column 'id' of the evaluated data set is of the type {ids.type}, which is no "
                "name; make texts or numbers of it, or rename it to number the rows"
            ) from error

    def _check_ids(self) -> None:
        hashes = IdHashes()
        for _, identifiers in self._all_ids():
            hashes.add(identifiers)
        suspects = hashes.repeated()
        first: dict[str, int] = {}
        for start, identifiers in self._all_ids() if suspects else ():
            for row, identifier in enumerate(identifiers, start):
                if hash_id(identifier) in suspects and first.setdefault(identifier, row) != row:
                    raise DataError(
                        f"rows {first[identifier]} and {row} of the evaluated data set have the "
                        f"same id {shown(identifier)}; make ids unique, or rename the column "
                        "'id' to number the rows"
                    )

    def _all_ids(self) -> Iterator[tuple[int, list[str]]]:
        """The first row of each part of the data set, and the part's ids."""
        assert self.length is not None
        for start in range(0, self.length, _PART_ROWS):
            places = range(start, min(start + _PART_ROWS, self.length))
            identifiers = self._ids(places).to_pylist()
            if None in identifiers:
                row = start + identifiers.index(None)
                raise DataError(f"row {row} of the evaluated data set has no id; give it one")
            yield start, identifiers


class FixedOrder(Sequence[int]):
    """A sampler of an order that is known.

    Attributes:
        order: positions in the data set.
    """

    def __init__(self, order: Sequence[int]) -> None:
        self.order = order

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, place: Any) -> Any:
        return self.order[place]


def read_loader(loader: Any, data: DataRows, ranks: int) -> None:
    """Note in ``data`` in which order, and how many at a time, ``loader`` gives its rows.

    Raises:
        ConfigError: a stream of which each rank reads a part by itself, or an unknown order: nobody
            can say which row is which, or where rows end and padding begins.
    """
    from accelerate.data_loader import DataLoaderDispatcher
    from torch.utils.data import SequentialSampler

    if data.length is None and ranks > 1 and not isinstance(loader, DataLoaderDispatcher):
        raise ConfigError(
            "the evaluated data set has no length, and each rank reads a part of it by itself, so "
            "rows that fill the last batch cannot be told from others; let rank 0 deal them out "
            "(accelerator_config={'dispatch_batches': True}), or evaluate a data set with a length"
        )
    batches = getattr(loader, "batch_sampler", None)
    batches = getattr(batches, "batch_sampler", batches)  # accelerate's, which deals them to ranks
    if data.length is None or batches is None:
        return
    sampler = getattr(batches, "sampler", batches)
    if isinstance(sampler, FixedOrder):
        data.order = sampler.order
    elif type(sampler) is not SequentialSampler and not _is_stream(loader):
        raise ConfigError(
            f"the rows of this evaluation come in the order of a {type(sampler).__name__}, which "
            "does not tell it, so their ids are not known; evaluate them as they stand, or give "
            "the trainer's _get_eval_sampler that sampler"
        )
    size = getattr(batches, "batch_size", None)
    if size is not None and not _is_stream(loader):
        data.batch_rows = size * ranks
        data.dropped = data.batch_rows - 1 if getattr(batches, "drop_last", False) else 0


def _is_stream(loader: Any) -> bool:
    from torch.utils.data import IterableDataset

    return isinstance(getattr(loader, "dataset", None), IterableDataset)


def _is_table(dataset: Any) -> bool:
    from datasets import Dataset

    return isinstance(dataset, Dataset)


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):  # rows that come as a stream
        return None


def _flat(column: Any) -> pa.Array:
    array = column.combine_chunks()
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _kept_fields(table: Any, names: list[str], keep: Sequence[str]) -> tuple[pa.Field, ...]:
    if not keep:
        return ()
    if table is None:
        raise ConfigError(
            f"keep={list(keep)}: columns can be kept from a datasets.Dataset only; make one of "
            "the evaluated data, or leave keep out"
        )
    for name in keep:
        if name not in names:
            raise ConfigError(
                f"keep: the evaluated data set has no column {shown(name)}"
                f"{did_you_mean(name, names)}"
            )
        if name in RESERVED_COLUMNS:
            raise ConfigError(
                f"keep: a prediction set has a column '{name}' of its own; rename that of the data"
            )
    schema = table.features.arrow_schema
    return tuple(pa.field(name, schema.field(name).type) for name in keep)
