from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipeline.compare.compare import compare
from pipeline.compare.result import Comparison
from pipeline.errors import ConfigError, ScoresError
from tests.compare.systems import Rows, make_rows, write_scores

ROWS = make_rows(130, 0.3, 1), make_rows(130, 0.2, 2)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    return write_scores(folder / "a", ROWS[0]), write_scores(folder / "b", ROWS[1])


def _numbers(comparison: Comparison) -> Any:
    """All that does not name a folder."""
    found = json.loads(comparison.to_json())
    for side in (found["baseline"], *found["systems"]):
        side.pop("scores")
        side.pop("content")
    return found


def test_the_difference_of_the_scores(pair: tuple[Path, Path]) -> None:
    found = compare(pair[0], pair[1:], replicates=100)
    assert found.rows == 130
    (system,) = found.systems
    assert list(system.differences) == ["rouge1", "rouge2", "rougeL", "rougeLsum", "bleu"]
    ours, theirs = (json.loads((folder / "summary.json").read_bytes()) for folder in pair)
    assert (found.baseline.content, system.content) == (ours["content"], theirs["content"])
    for label, name in (("rouge", "rougeL"), ("bleu", "bleu")):
        each = system.differences[name]
        assert each.baseline == ours["metrics"][label]["scores"][name]["value"]
        assert each.system == theirs["metrics"][label]["scores"][name]["value"]
        assert each.difference == each.system - each.baseline
        assert 0 < each.low < each.difference < each.high
        assert found.signatures[label] == ours["metrics"][label]["signature"]


@pytest.mark.parametrize("confidence", [0.0, 1.0, float("nan")])
def test_a_level_that_is_none(pair: tuple[Path, Path], confidence: float) -> None:
    with pytest.raises(ConfigError, match="--confidence: expected a number between 0 and 1, got"):
        compare(pair[0], pair[1:], confidence=confidence)


def test_wins_and_the_rows_that_changed_most(pair: tuple[Path, Path]) -> None:
    scores = [
        np.concatenate(
            [
                pq.ParquetFile(path).read().column("bleu").to_numpy()
                for path in sorted(folder.glob("chunk-*"))
            ]
        )
        for folder in pair
    ]
    (system,) = compare(pair[0], pair[1:], replicates=2, top=4).systems
    bleu, delta = system.differences["bleu"], scores[1] - scores[0]
    assert (bleu.wins, bleu.ties, bleu.losses, bleu.undefined_rows) == (
        (delta > 0).sum(),
        (delta == 0).sum(),
        (delta < 0).sum(),
        0,
    )
    assert min(bleu.wins, bleu.ties, bleu.losses) > 0
    assert len(bleu.changed) == 4
    rows = sorted(range(130), key=lambda row: (-abs(delta[row]), row))[:4]
    assert [change.id for change in bleu.changed] == [f"id-{row}" for row in rows]
    for change, row in zip(bleu.changed, rows, strict=True):
        assert (change.baseline, change.system) == (scores[0][row], scores[1][row])
        assert change.difference == delta[row]


@pytest.mark.parametrize("chunk_rows", [1, 7, 130])
def test_chunks_and_order_change_no_bit(
    tmp_path: Path, pair: tuple[Path, Path], chunk_rows: int
) -> None:
    expected = _numbers(compare(pair[0], pair[1:], replicates=100))
    shuffled: Rows = random.Random(chunk_rows).sample(ROWS[1], 130)
    ours = write_scores(tmp_path / "a", ROWS[0], chunk_rows=chunk_rows)
    theirs = write_scores(tmp_path / "b", shuffled, chunk_rows=chunk_rows)
    assert _numbers(compare(ours, [theirs], replicates=100)) == expected


def test_blocks_of_the_bootstrap(tmp_path: Path) -> None:
    # More rows than one block of weights. The interval of one set is that of score itself.
    ours = write_scores(tmp_path / "a", make_rows(1500, 0.3), chunk_rows=700, replicates=30)
    empty = [(name, "", references) for name, _, references in make_rows(1500, 0.3)]
    nothing = write_scores(tmp_path / "b", empty, chunk_rows=1500)
    (system,) = compare(ours, [nothing], replicates=30).systems
    written = json.loads((ours / "summary.json").read_bytes())["metrics"]
    for label, name in (("rouge", "rouge1"), ("bleu", "bleu")):
        interval, each = written[label]["scores"][name], system.differences[name]
        assert each.system == 0
        expected = pytest.approx((interval["low"], interval["high"]), rel=1e-12)
        assert (-each.high, -each.low) == expected


def test_each_system_against_the_baseline(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    third = write_scores(tmp_path / "c", make_rows(130, 0.1, 3))
    found = compare(pair[0], [pair[1], third], replicates=40)
    assert [system.scores for system in found.systems] == [str(pair[1]), str(third)]
    for system, folder in zip(found.systems, (pair[1], third), strict=True):
        assert compare(pair[0], [folder], replicates=40).systems == [system]
    assert found.systems[0] != found.systems[1]


def test_the_other_way_round_is_the_negative(pair: tuple[Path, Path]) -> None:
    (forth,), (back,) = (
        compare(one, [other], replicates=50).systems for one, other in (pair, pair[::-1])
    )
    for name, each in forth.differences.items():
        reverse = back.differences[name]
        assert each.difference == -reverse.difference
        # A percentile is interpolated from below.
        assert (each.low, each.high) == pytest.approx((-reverse.high, -reverse.low), rel=1e-12)
        assert (each.wins, each.losses) == (reverse.losses, reverse.wins)
        assert each.p_value == reverse.p_value


def test_settings_of_the_bootstrap(pair: tuple[Path, Path]) -> None:
    def interval(**how: Any) -> tuple[float | None, float | None]:
        (system,) = compare(pair[0], pair[1:], **{"replicates": 50, **how}).systems
        return system.differences["bleu"].low, system.differences["bleu"].high

    first = interval()
    assert first == interval()
    assert first != interval(seed=1)
    assert first != interval(replicates=49)
    (low, high), (inner_low, inner_high) = first, interval(confidence=0.5)
    assert low < inner_low < inner_high < high


def test_some_metrics_or_scores(pair: tuple[Path, Path]) -> None:
    def names(*metrics: str) -> list[str]:
        found = compare(pair[0], pair[1:], replicates=5, metrics=metrics)
        return list(found.systems[0].differences)

    assert names("bleu") == ["bleu"]
    assert names("rouge2", "rouge1") == ["rouge1", "rouge2"]
    assert names("rouge", "rouge1") == ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    with pytest.raises(ConfigError, match=r"--metric: there is no 'rouge3' \(did you mean rouge"):
        names("rouge3")


def test_two_of_one_metric(tmp_path: Path) -> None:
    metrics = ("bleu", {"bleu": {"tokenize": "char"}})
    folders = [
        write_scores(tmp_path / name, rows, metrics=metrics)
        for name, rows in zip("ab", ROWS, strict=True)
    ]
    (system,) = compare(folders[0], folders[1:], replicates=5).systems
    written = json.loads((folders[1] / "summary.json").read_bytes())["metrics"]
    for name, each in system.differences.items():
        assert each.system == written[name]["scores"][name]["value"]
    assert list(system.differences) == ["bleu", "bleu[tokenize=char]"]


def test_a_metric_of_ones_own(tmp_path: Path) -> None:
    metrics = ({"custom": "pipeline.score.metrics.bleu:Bleu"},)
    folders = [
        write_scores(tmp_path / name, rows, metrics=metrics)
        for name, rows in zip("ab", ROWS, strict=True)
    ]
    (system,) = compare(folders[0], folders[1:], replicates=5).systems
    assert system.differences["bleu"].system is not None


def test_sets_without_rows(tmp_path: Path) -> None:
    folders = [write_scores(tmp_path / name, []) for name in "ab"]
    found = compare(folders[0], folders[1:], replicates=5)
    assert found.rows == 0
    bleu = found.systems[0].differences["bleu"]
    assert (bleu.baseline, bleu.difference, bleu.low, bleu.p_value) == (None,) * 4
    assert (bleu.undefined_replicates, bleu.wins, bleu.changed) == (5, 0, [])


def test_one_row(tmp_path: Path) -> None:
    folders = [
        write_scores(tmp_path / name, [("x", text, ["the cat sat on the mat"])])
        for name, text in (("a", "the cat sat"), ("b", "the cat sat on the mat"))
    ]
    found = compare(folders[0], folders[1:], replicates=50).systems[0].differences["bleu"]
    assert (found.wins, found.ties, found.losses) == (1, 0, 0)
    # Every replicate that has the row at all has the whole difference.
    assert found.low == found.high == found.difference
    assert 5 < found.undefined_replicates < 40


def test_undefined_rows_are_no_ties(tmp_path: Path) -> None:
    rows: Rows = [("x", "a", [" "]), ("y", "the cat", ["the cat"])]
    folders = [write_scores(tmp_path / name, rows) for name in "ab"]
    bleu = compare(folders[0], folders[1:], replicates=5).systems[0].differences["bleu"]
    assert (bleu.wins, bleu.ties, bleu.losses, bleu.undefined_rows) == (0, 1, 0, 1)


def test_statistics_that_do_not_give_the_summary(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    ours = write_scores(tmp_path / "a", ROWS[0])
    summary = json.loads((ours / "summary.json").read_bytes())
    summary["metrics"]["bleu"]["scores"]["bleu"]["value"] += 1e-9
    (ours / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(ScoresError, match=r"a: the statistics give bleu .* summary.json says .*:"):
        compare(ours, pair[1:], replicates=5)


def test_partial_sets(tmp_path: Path) -> None:
    # Neither set has the rows 0 to 49; row numbers begin at 50, and one set ends before the other.
    ours = write_scores(tmp_path / "a", ROWS[0], without=[0])
    theirs = write_scores(tmp_path / "b", ROWS[1], without=[0])
    found = compare(ours, [theirs], replicates=30)
    assert (found.rows, found.baseline.rows, found.baseline.complete) == (80, 80, False)
    less = write_scores(tmp_path / "c", ROWS[1], without=[0, 2])
    common = compare(ours, [theirs, less], replicates=30, common=True)
    assert common.rows == 50
    # What both have is all that counts, wherever it stands.
    again = write_scores(tmp_path / "d", ROWS[1][50:100], chunk_rows=20)
    assert compare(ours, [again], replicates=30, common=True).systems[0].differences == (
        common.systems[1].differences
    )


def test_a_row_keeps_its_weights_whatever_is_missing(tmp_path: Path) -> None:
    rows = make_rows(130, 0.3, 1)
    empty = [(name, "", references) for name, _, references in rows]
    gaps = {"chunk_rows": 20, "without": [0, 3], "metrics": ("bleu",), "replicates": 30}
    ours, theirs = write_scores(tmp_path / "a", rows, **gaps), write_scores(tmp_path / "b", empty)
    (system,) = compare(ours, [theirs], replicates=30, common=True, metrics=["bleu"]).systems
    written = json.loads((ours / "summary.json").read_bytes())["metrics"]["bleu"]["scores"]["bleu"]
    bleu = system.differences["bleu"]
    expected = pytest.approx((written["low"], written["high"]), rel=1e-12)
    assert (-bleu.high, -bleu.low) == expected
