"""``predict.rows``: a slice of the data set, such as ``1000:2000``."""

from __future__ import annotations

import re

from pipeline.errors import ConfigError


def slice_rows(text: str | None, total: int) -> tuple[int, int]:
    """First row of the slice and the row after its last.

    Args:
        text: ``first:stop`` as in Python, row numbers from 0, either end open; None is all rows.
        total: rows of the data set.

    Raises:
        ConfigError: not a slice, an empty one, or one that goes beyond the data set.
    """
    if text is None:
        return 0, total
    match = re.fullmatch(r"(\d*):(\d*)", text.strip(), flags=re.ASCII)
    if match is None:
        raise ConfigError(
            f"predict.rows: '{text}' is not a slice; write first:stop with row numbers from 0, "
            "such as 1000:2000, :500 or 2000:"
        )
    first = int(match[1] or 0)
    stop = int(match[2]) if match[2] else total
    if first >= total or stop > total:
        raise ConfigError(
            f"predict.rows: '{text}' goes beyond the data set, which has {total} rows "
            f"(0 to {total - 1})"
        )
    if first >= stop:
        raise ConfigError(f"predict.rows: '{text}' holds no row")
    return first, stop
