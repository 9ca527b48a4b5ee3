"""A grid against its parts: the comparison of each data set, and the scores of each folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.compare.axes import Axes
from pipeline.compare.block import Sampling
from pipeline.compare.compare import compare
from pipeline.compare.grid import compare_grid
from pipeline.compare.grid_result import Cell, Grid
from pipeline.errors import ConfigError, ScoresError
from tests.compare.systems import make_rows, write_scores

# How wrong each system is; wer counts errors. The sets of `talk` have other references.
NOISE = {"small/1": 0.5, "small/2": 0.2, "large/1": 0.5, "large/2": 0.05}
ROWS = {"news": 60, "talk": 40}
METRICS: dict[str, Any] = {"news": ("bleu", "wer"), "talk": ("exact_match", "wer")}


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scores")
    for dataset, rows in ROWS.items():
        for seed, (system, noise) in enumerate(NOISE.items()):
            (folder / dataset / system).parent.mkdir(parents=True, exist_ok=True)
            seed = 0 if system == "large/1" else seed  # the same errors as those of small/1
            write_scores(
                folder / dataset / system, make_rows(rows, noise, seed), metrics=METRICS[dataset]
            )
    return folder


def grid(scores: Path, **options: Any) -> Grid:
    axes = Axes(
        f"{scores}/{{dataset}}/{{model}}/{{checkpoint}}",
        {"model": ("small", "large"), "checkpoint": ("1", "2"), "dataset": ("news", "talk")},
    )
    return compare_grid(
        axes, **{"across": "dataset", "sampling": Sampling(replicates=30)} | options
    )


def cells(found: Grid, column: int) -> dict[str, Cell]:
    named = {"/".join(row.system.values()): row.cells[column] for row in found.rows}
    return {name: cell for name, cell in named.items() if cell is not None}


def test_rows_and_columns_are_those_of_the_axes_and_the_data_sets(scores: Path) -> None:
    found = grid(scores)
    assert [row.system for row in found.rows] == [
        {"model": model, "checkpoint": checkpoint}
        for model in ("small", "large")
        for checkpoint in ("1", "2")
    ]
    columns = [(c.group, c.score, c.lower_is_better, c.rows) for c in found.columns]
    assert columns == [
        ("news", "bleu", False, 60),
        ("news", "wer", True, 60),
        ("talk", "exact_match", False, 40),
        ("talk", "wer", True, 40),
    ]
    assert found.baseline == "small/1"
    assert found.missing == []


def test_a_cell_is_what_score_and_compare_say(scores: Path) -> None:
    found = cells(grid(scores, baseline="small/2"), 1)
    news = scores / "news"
    comparison = compare(
        news / "small/2", [news / name for name in NOISE if name != "small/2"], replicates=30
    )
    for system in comparison.systems:
        cell = found[system.scores.removeprefix(f"{news}/")]
        summary = json.loads((Path(system.scores) / "summary.json").read_bytes())
        own = summary["metrics"]["wer"]["scores"]["wer"]
        assert (cell.value, cell.low, cell.high) == (own["value"], own["low"], own["high"])
        expected = system.differences["wer"]
        assert (cell.difference, cell.difference_low, cell.difference_high, cell.p_value) == (
            *(expected.difference, expected.low, expected.high, expected.p_value),
        )
    baseline = found["small/2"]
    assert baseline.value is not None
    assert (baseline.difference, baseline.verdict) == (None, None)


@pytest.mark.parametrize("column", [0, 1])  # bleu, where more is better, and wer, where less is
def test_best_and_verdict_know_the_direction(scores: Path, column: int) -> None:
    found = cells(grid(scores), column)
    assert [name for name, cell in found.items() if cell.best] == ["large/2"]
    assert {name: cell.verdict for name, cell in found.items()} == {
        "small/1": None, "small/2": "better", "large/1": None, "large/2": "better",
    }  # fmt: skip
    against_the_best = cells(grid(scores, baseline="large/2"), column)
    assert {cell.verdict for name, cell in against_the_best.items() if name != "large/2"} == {
        "worse"
    }


def test_equal_values_are_best_together(scores: Path) -> None:
    axes = Axes(f"{scores}/news/{{model}}/1", {"model": ("small", "large")})
    found = compare_grid(axes, sampling=Sampling(replicates=5))
    assert found.across is None
    assert [column.group for column in found.columns] == [None, None]
    assert not any(cell.best for cell in cells(found, 0).values())  # all equal: nothing to choose
    three = Axes(
        f"{scores}/{{dataset}}/{{model}}/1", {"model": ("small", "large"), "dataset": ("news",)}
    )
    assert len(compare_grid(three, across="dataset", sampling=Sampling(replicates=5)).rows) == 2


def test_metrics_are_picked_where_they_are(scores: Path) -> None:
    found = grid(scores, metrics=["bleu", "exact_match"])
    assert [(column.group, column.score) for column in found.columns] == [
        ("news", "bleu"), ("talk", "exact_match"),
    ]  # fmt: skip
    assert [column.group for column in grid(scores, metrics=["bleu"]).columns] == ["news"]
    with pytest.raises(ConfigError, match=r"--metric: there is no 'blue' \(did you mean bleu\?\)"):
        grid(scores, metrics=["blue"])


def test_what_is_missing_is_named_and_left_empty_only_where_asked(
    scores: Path, tmp_path: Path
) -> None:
    holes = tmp_path / "scores"
    shutil.copytree(scores, holes)
    shutil.rmtree(holes / "talk/large/1")
    with pytest.raises(
        ScoresError, match="1 of 8 cells have no scores: .*talk/large/1; score them"
    ):
        grid(holes)
    found = grid(holes, allow_missing=True)
    assert found.missing == [str(holes / "talk/large/1")]
    row = found.rows[2]
    assert row.cells[2:] == [None, None]
    assert None not in row.cells[:2]
    assert cells(found, 0) == cells(grid(scores), 0)
    with pytest.raises(ScoresError, match="talk/large/1: the baseline large/1 has no scores there"):
        grid(holes, allow_missing=True, baseline="large/1")


def test_names_that_are_not_there(scores: Path) -> None:
    with pytest.raises(ConfigError, match="--across: there is no axis 'data' .*dataset"):
        grid(scores, across="data")
    with pytest.raises(ConfigError, match="--baseline: there is no system 'small' .*small/1"):
        grid(scores, baseline="small")
    with pytest.raises(ConfigError, match="--across model: .* has no other axis for the rows"):
        compare_grid(Axes("{model}", {"model": ("a",)}), across="model")


def test_sets_of_other_examples_are_refused_as_compare_does(scores: Path) -> None:
    axes = Axes(f"{scores}/{{dataset}}/small/1", {"dataset": ("news", "talk")})
    with pytest.raises(ScoresError, match="are only in"):
        compare_grid(axes, metrics=["wer"])


def test_results_that_are_no_sums_are_shown_and_not_compared(scores: Path, tmp_path: Path) -> None:
    for name in ("small", "large"):
        shutil.copytree(scores / "news" / name / "2", tmp_path / name)
        path = tmp_path / name / "summary.json"
        summary = json.loads(path.read_bytes())
        summary["metrics"]["meteor"] = {
            "signature": "evaluate", "scale": 1.0,
            "scores": {"meteor": {"value": 0.25, "low": None, "high": None}},
        }  # fmt: skip
        path.write_text(json.dumps(summary))
    axes = Axes(f"{tmp_path}/{{model}}", {"model": ("small", "large")})
    for metrics in ((), ("meteor",), ("meteor", "bleu")):
        found = compare_grid(axes, metrics=metrics, sampling=Sampling(replicates=5))
        assert found.columns[-1].score == "meteor"
        assert found.columns[-1].lower_is_better is None
        for cell in cells(found, -1).values():
            assert (cell.value, cell.best, cell.difference) == (0.25, False, None)
