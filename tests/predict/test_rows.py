"""A slice of the data set."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import load_section
from pipeline.errors import ConfigError
from pipeline.predict.config import PredictConfig
from pipeline.predict.rows import slice_rows
from tests.predict.test_run import TEXTS, place, rows_of, run

__all__ = ["place"]


@given(st.data(), st.integers(1, 50))
def test_it_is_what_python_takes(data: st.DataObject, total: int) -> None:
    first = data.draw(st.integers(0, total - 1))
    stop = data.draw(st.integers(first + 1, total))
    for text, expected in {
        f"{first}:{stop}": slice(first, stop),
        f"{first}:": slice(first, None),
        f":{stop}": slice(stop),
        " : ": slice(None),
    }.items():
        begin, end = slice_rows(text, total)
        assert list(range(begin, end)) == list(range(total))[expected]
    assert slice_rows(None, total) == (0, total)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a slice; write first:stop with row numbers from 0, such as 1000:2000"),
        ("5", "'5' is not a slice"),
        ("-5:", "'-5:' is not a slice"),
        ("1:2:3", "is not a slice"),
        ("a:b", "is not a slice"),
        ("3:3", "'3:3' holds no row"),
        ("4:3", "'4:3' holds no row"),
        ("10:", r"goes beyond the data set, which has 10 rows \(0 to 9\)"),
        ("0:11", "goes beyond the data set"),
    ],
)
def test_what_is_no_slice_of_it(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"predict.rows: .*{message}"):
        slice_rows(text, 10)


def test_yaml_keeps_it_a_text(tmp_path: Path) -> None:
    """In YAML 1.1, 10:20 would be the number 620, in base 60."""
    (tmp_path / "p.yaml").write_text("predict: {rows: 10:20}\n")
    config = load_section(tmp_path / "p.yaml", "predict", PredictConfig)
    assert config.rows == "10:20"
    (tmp_path / "p.yaml").write_text("predict: {rows: 100}\n")
    with pytest.raises(ConfigError, match=r"predict.rows: expected str or null, got int"):
        load_section(tmp_path / "p.yaml", "predict", PredictConfig)


def test_a_slice_keeps_the_numbers_and_the_predictions_of_its_rows(place: Path) -> None:
    run(place, out="whole")
    result = run(place, out="slice", rows="7:19")
    assert (result.rows, result.chunks) == (12, 3)
    columns = ("row", "id", "references", "topic", "prediction_ids")
    whole = [{name: row[name] for name in columns} for row in rows_of(place / "whole")]
    part = [{name: row[name] for name in columns} for row in rows_of(place / "slice")]
    assert part == whole[7:19]
    assert run(place, out="slice", rows="7:19").kept == 3
    assert len(TEXTS) == 23
