from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.score.histogram import BINS, Histogram, count_bins, write_histograms


def test_bins() -> None:
    counts = count_bins(np.array([0.0, 0.049, 0.05, 0.999, 1.0, 1.7, -0.1, np.nan]), 1.0)
    assert counts[:2].tolist() == [3, 1]
    assert counts[-1] == 3
    assert counts.sum() == 7


def test_files(tmp_path: Path) -> None:
    folder = tmp_path / "plots"
    rows = np.arange(BINS)
    write_histograms(folder, {"bleu": Histogram(100.0, rows), "old": Histogram(1.0, rows)})
    (folder / "notes.csv").write_text("mine,not a histogram\n")
    write_histograms(
        folder, {"bleu": Histogram(100.0, rows), "rouge1[tokenizer=a/b]": Histogram(1.0, rows)}
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        "bleu.csv",
        "notes.csv",
        "rouge1[tokenizer=a_b].csv",
    ]
    lines = (folder / "bleu.csv").read_text().splitlines()
    assert lines[:3] == ["score,rows", "0,0", "5,1"]
    assert lines[-1] == "95,19"
    assert (folder / "rouge1[tokenizer=a_b].csv").read_text().splitlines()[4] == "0.15,3"
