"""How the scores of single examples are spread: counts per bin, as CSV for ``dvc plots``.

One file per headline score, ``<score>.csv`` with the columns ``score`` (lower edge of the bin) and
``rows``; 20 bins from 0 to the metric's scale, what lies beyond in the first or last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline import atomic
from pipeline.score.metrics.base import Floats

BINS = 20
_HEADER = "score,rows"


class Histogram(NamedTuple):
    """The histogram of one score.

    Attributes:
        scale: upper edge of the last bin.
        rows: (BINS,) rows per bin.
    """

    scale: float
    rows: NDArray[np.int64]


def count_bins(scores: Floats, scale: float) -> NDArray[np.int64]:
    """(BINS,) rows per bin; undefined scores (NaN) are in none."""
    bins = np.floor(scores[~np.isnan(scores)] * (BINS / scale)).clip(0, BINS - 1)
    return np.bincount(bins.astype(np.int64), minlength=BINS)


def write_histograms(folder: Path, histograms: Mapping[str, Histogram]) -> None:
    """Write one file per score into ``folder``, and remove those of scores that are gone.

    Args:
        folder: made where it is missing; files that are not histograms stay.
        histograms: name of a score -> its histogram.
    """
    paths = {folder / _file_name(name): histogram for name, histogram in histograms.items()}
    for path, (scale, rows) in paths.items():
        edges = (round(scale * bin_ / BINS, 10) for bin_ in range(BINS))
        lines = [f"{edge:g},{count}" for edge, count in zip(edges, rows.tolist(), strict=True)]
        atomic.write_text(path, "\n".join([_HEADER, *lines]) + "\n")
    for stale in set(folder.glob("*.csv")) - paths.keys():
        if stale.read_bytes().splitlines()[:1] == [_HEADER.encode()]:
            stale.unlink()


def _file_name(score: str) -> str:
    return re.sub(r"[^\w.=+,\[\]-]", "_", score) + ".csv"
