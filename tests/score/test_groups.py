"""Scores by kept columns."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ConfigError
from pipeline.score import groups
from pipeline.score import run as run_module
from pipeline.score.config import ScoreConfig
from pipeline.score.groups import split_rows
from pipeline.score.run import score
from tests.score.sets import PREDICTIONS, REFERENCES, write_set
from tests.score.strategies import words

TOPICS = ["a", "b", "a", None, "b"]
YEARS = [1, 1, 2, 2, 1]


def _score(folder: Path, by: tuple[str, ...], out: str = "out", **how: Any) -> dict[str, Any]:
    config = ScoreConfig(by=by, replicates=how.pop("replicates", 20), **how.pop("config", {}))
    target = folder.parent / out
    return score(folder, target / "scores", target / "metrics.json", config, **how)


def test_a_group_is_scored_as_a_set_of_its_rows(tmp_path: Path) -> None:
    write_set(tmp_path / "set", keep={"topic": TOPICS, "year": YEARS})
    summary = _score(tmp_path / "set", ("topic", "year"))
    assert summary["by"] == ["topic", "year"]
    assert [group["values"] for group in summary["groups"]] == [
        {"topic": "a", "year": 1},
        {"topic": "a", "year": 2},
        {"topic": "b", "year": 1},
        {"topic": None, "year": 2},
    ]
    assert [group["rows"] for group in summary["groups"]] == [1, 1, 2, 1]
    for group in summary["groups"]:
        rows = [
            row for row in range(5) if (TOPICS[row], YEARS[row]) == tuple(group["values"].values())
        ]
        alone = tmp_path / f"set-{rows[0]}"
        write_set(alone, [PREDICTIONS[r] for r in rows], [REFERENCES[r] for r in rows])
        expected = _score(alone, (), config={"confidence": 0.0})
        for metric in expected["metrics"].values():
            for name, entry in metric["scores"].items():
                found = group["scores"][name]
                assert (found and found["value"]) == (entry and entry["value"])
    whole = _score(tmp_path / "set", (), "whole")
    assert whole["metrics"] == summary["metrics"]
    assert (whole["by"], whole["groups"]) == ([], [])


def test_metrics_json_stays_flat(tmp_path: Path) -> None:
    write_set(tmp_path / "set", keep={"topic": TOPICS})
    _score(tmp_path / "set", ("topic",))
    _score(tmp_path / "set", (), "whole")
    files = [tmp_path / out / "metrics.json" for out in ("out", "whole")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_interval_of_a_group_is_that_of_its_rows(tmp_path: Path) -> None:
    # One group of all rows has the weights, and so the interval, of the whole.
    write_set(tmp_path / "set", keep={"one": [7] * 5})
    summary = _score(tmp_path / "set", ("one",))
    (group,) = summary["groups"]
    scores = [m["scores"] for m in summary["metrics"].values()]
    assert group["scores"] == {name: entry for each in scores for name, entry in each.items()}
    assert group["scores"]["rouge1"]["low"] is not None


@settings(deadline=None, max_examples=8)
@given(
    rows=st.lists(
        st.tuples(words, words, st.sampled_from(["x", "y", None]), st.none() | st.booleans()),
        min_size=1,
        max_size=30,
    ),
    chunk_rows=st.integers(1, 7),
)
def test_any_chunks_give_the_same_groups(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str | None, bool | None]],
    chunk_rows: int,
) -> None:
    folder = tmp_path_factory.mktemp("sets")
    found = []
    for name, size in (("whole", 100), ("cut", chunk_rows)):
        write_set(
            folder / name, [r[0] for r in rows], [[r[1]] for r in rows], chunk_rows=size, text=True,
            keep={"s": pa.array([r[2] for r in rows], pa.string()),
                  "b": pa.array([r[3] for r in rows], pa.bool_())},
        )  # fmt: skip
        found.append(_score(folder / name, ("s", "b"), name)["groups"])
    assert found[0] == found[1]
    assert sum(group["rows"] for group in found[0]) == len(rows)
    assert all(group["rows"] for group in found[0])


def test_any_workers_give_the_same_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "CALL_ROWS", 200)
    write_set(
        tmp_path / "set", PREDICTIONS * 200, REFERENCES * 200, chunk_rows=70,
        keep={"topic": TOPICS * 200},
    )  # fmt: skip
    found = []
    for out, n_jobs in (("one", 1), ("two", 2)):
        _score(tmp_path / "set", ("topic",), out, config={"n_jobs": n_jobs}, worker_rows=0)
        found.append((tmp_path / out / "scores/summary.json").read_bytes())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1.0, math.nan, None, -0.0, 0.0]), [0.0, 1.0, None]),
        (pa.array(["b", "", None, "a"]).dictionary_encode(), ["", "a", "b", None]),
        (pa.array([True, None, False]), [False, True, None]),
        (pa.array([2**60, -1, None], pa.int64()), [-1, 2**60, None]),
        (pa.array([datetime.date(2024, 5, 1), None]), ["2024-05-01", None]),
        (pa.array([None, None], pa.null()), [None]),
    ],
)
def test_kinds_of_values(tmp_path: Path, values: pa.Array, expected: list[Any]) -> None:
    write_set(tmp_path / "set", ["a"] * len(values), [["a"]] * len(values), keep={"k": values})
    summary = _score(tmp_path / "set", ("k",))
    found = [group["values"]["k"] for group in summary["groups"]]
    assert list(map(repr, found)) == list(map(repr, expected))  # -0.0 is not 0.0, nor True 1
    json.dumps(summary, allow_nan=False)


@pytest.mark.parametrize(
    "values",
    [
        [["a"]],
        [{"a": 1}],
        *(
            pa.array([b"\xff"], kind)
            for kind in (pa.binary(), pa.large_binary(), pa.binary(1), pa.binary_view())
        ),
    ],
)
def test_columns_that_make_no_groups(tmp_path: Path, values: Any) -> None:
    write_set(tmp_path / "set", ["a"], [["a"]], keep={"k": values})
    with pytest.raises(ConfigError, match=r"score.by: the column 'k' holds .*; group by texts"):
        _score(tmp_path / "set", ("k",))


def test_an_infinite_number_makes_no_group(tmp_path: Path) -> None:
    write_set(tmp_path / "set", ["a"], [["a"]], keep={"k": [math.inf]})
    with pytest.raises(ConfigError, match="holds inf; JSON has no infinity"):
        _score(tmp_path / "set", ("k",))


def test_a_column_that_was_not_kept(tmp_path: Path) -> None:
    write_set(tmp_path / "set", keep={"topic": TOPICS, "year": YEARS})
    message = r"'subject' is not in the prediction set .the set keeps topic, year.*prepare.keep"
    with pytest.raises(ConfigError, match=message):
        _score(tmp_path / "set", ("subject",))
    with pytest.raises(ConfigError, match="names the column 'topic' twice"):
        _score(tmp_path / "set", ("topic", "topic"))
    write_set(tmp_path / "none")
    with pytest.raises(ConfigError, match="the set keeps no column"):
        _score(tmp_path / "none", ("id",))


@pytest.mark.parametrize("chunk_rows", [1, 100])
def test_too_many_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_rows: int) -> None:
    monkeypatch.setattr(groups, "MAX_GROUPS", 3)
    monkeypatch.setattr(run_module, "CALL_ROWS", 1)
    write_set(tmp_path / "set", keep={"k": [1, 2, 3, 4, 4]}, chunk_rows=chunk_rows)
    with pytest.raises(
        ConfigError, match="score.by: k makes more than 3 groups, which is the most"
    ):
        _score(tmp_path / "set", ("k",))
    assert not (tmp_path / "out/metrics.json").exists()
    monkeypatch.setattr(groups, "MAX_GROUPS", 4)
    assert len(_score(tmp_path / "set", ("k",))["groups"]) == 4


def test_rows_are_split_in_their_order() -> None:
    table = pa.table({"a": ["x", "y", "x", None], "b": [1, 1, 2, 1]})
    found = {key: rows.tolist() for key, rows in split_rows(table, ("a", "b"))}
    assert found == {("x", 1): [0], ("y", 1): [1], ("x", 2): [2], (None, 1): [3]}
