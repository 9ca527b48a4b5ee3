"""Rows by the values of kept columns: ``score.by``.

A group is a combination of values that occurs; null is a value of its own (and NaN, which is how a
missing number is often stored, is null). Values stand in ``summary.json`` as JSON has them: texts,
numbers, booleans; dates and times as ISO 8601.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.errors import ConfigError, listed, shown
from pipeline.score.buffers import one_array, to_numpy

# Each group holds a sum per replicate and statistic: 0.2 MB with the default metrics, in every
# process, and as much again for each call's result on its way to the parent.
MAX_GROUPS = 256

_NO_VALUES = (
    pa.types.is_nested,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
)

Key = tuple[Any, ...]


def split_rows(table: pa.Table, by: tuple[str, ...]) -> list[tuple[Key, NDArray[np.int64]]]:
    """Groups that occur in ``table``, each with the places of its rows.

    Raises:
        ConfigError: a column of lists or objects, or an infinite number.
    """
    codes = np.zeros(len(table), np.int64)
    keys: list[Key] = [()]
    for name in by:
        values, indices = _encode(table, name)
        combined = codes * len(values) + indices
        present, codes = np.unique(combined, return_inverse=True)
        pairs = [divmod(code, len(values)) for code in present.tolist()]
        keys = [(*keys[left], values[right]) for left, right in pairs]
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(keys)))
    return list(zip(keys, np.split(order, ends[:-1]), strict=True))


def sort_key(key: Key) -> list[tuple[bool, str, Any]]:
    """Orders groups by their values; null comes last."""
    return [(value is None, type(value).__name__, 0 if value is None else value) for value in key]


def check_columns(by: tuple[str, ...], keep: tuple[str, ...]) -> None:
    """Check that the set holds the columns.

    Raises:
        ConfigError: a column that was not kept, or one named twice.
    """
    for name in by:
        if name not in keep:
            held = f"the set keeps {listed(keep)}" if keep else "the set keeps no column"
            raise ConfigError(
                f"score.by: {shown(name)} is not in the prediction set ({held}); name it in "
                "prepare.keep and predict again, or pass it to `twophase ingest` with --keep"
            )
        if by.count(name) > 1:
            raise ConfigError(f"score.by names the column {shown(name)} twice")


def check_number(groups: int, by: tuple[str, ...]) -> None:
    """Check that the groups fit into memory.

    Raises:
        ConfigError: there are more than ``MAX_GROUPS``.
    """
    if groups > MAX_GROUPS:
        raise ConfigError(
            f"score.by: {listed(by)} makes more than {MAX_GROUPS} groups, which is the most; "
            "group by a column of fewer values (the scores of each row are in data/scores)"
        )


def _encode(table: pa.Table, name: str) -> tuple[list[Any], NDArray[np.int64]]:
    """Distinct values of a column, and for each row the place of its own among them."""
    column = one_array(table.column(name))
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if any(kind(column.type) for kind in _NO_VALUES):
        raise ConfigError(
            f"score.by: the column {shown(name)} holds {column.type}; group by texts, numbers, "
            "booleans or dates"
        )
    encoded = column.dictionary_encode(null_encoding="encode")
    places: dict[Any, int] = {}
    seen = [places.setdefault(_value(v, name), len(places)) for v in encoded.dictionary.to_pylist()]
    indices = np.array(seen, np.int64)[to_numpy(encoded.indices)]
    return list(places), indices


def _value(value: Any, name: str) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            raise ConfigError(
                f"score.by: the column {shown(name)} holds {value}; JSON has no infinity"
            )
        return value + 0.0  # -0.0 is 0.0
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
