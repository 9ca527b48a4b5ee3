from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import ScoresError
from pipeline.score.folder import check_target, replacing
from pipeline.store import lock


def _old(tmp_path: Path) -> Path:
    scores = tmp_path / "scores"
    scores.mkdir()
    (scores / "summary.json").write_text("old")
    return scores


def test_the_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    scores = _old(tmp_path)
    (scores / "chunk-00009.parquet").write_text("of another run")
    with replacing(scores) as new:
        (new / "summary.json").write_text("new")
        assert (scores / "summary.json").read_text() == "old"
    assert [path.name for path in scores.iterdir()] == ["summary.json"]
    assert (scores / "summary.json").read_text() == "new"
    assert list(tmp_path.iterdir()) == [scores]


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_a_failure_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    scores = _old(tmp_path)

    def fail() -> None:
        with replacing(scores) as new:
            (new / "summary.json").write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert (scores / "summary.json").read_text() == "old"
    assert list(tmp_path.iterdir()) == [scores]


def test_what_a_killed_run_left_is_removed_and_what_a_live_one_holds_is_not(
    tmp_path: Path,
) -> None:
    stale, alive = tmp_path / ".scores.tmp-1-dead", tmp_path / ".scores.tmp-2-alive"
    (stale / "new").mkdir(parents=True)
    with lock.hold(alive):
        with replacing(tmp_path / "scores") as new:
            (new / "summary.json").write_text("new")
        assert not stale.exists()
        assert alive.exists()


@pytest.mark.parametrize("name", ["notes.txt", "run.json"])
def test_what_is_not_scores_is_not_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(ScoresError, match=r"holds no summary.json, so it is not a folder"):
        replacing(tmp_path).__enter__()
    with pytest.raises(ScoresError, match=r"name another one with --scores, or remove it"):
        replacing(tmp_path / name).__enter__()
    assert (tmp_path / name).read_text() == "precious"


def test_an_empty_folder_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "a/scores").mkdir(parents=True)
    with replacing(tmp_path / "a/scores") as new:
        (new / "summary.json").write_text("new")
    assert (tmp_path / "a/scores/summary.json").exists()


def test_a_full_disk_is_an_expected_error(tmp_path: Path) -> None:
    with (
        pytest.raises(ScoresError, match=r"scores cannot be written: .*No space left"),
        replacing(tmp_path / "scores"),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_what_score_did_not_write_is_never_lost(tmp_path: Path) -> None:
    scores = tmp_path / "scores"
    scores.mkdir()
    (scores / "summary.json").write_text("{}")
    (scores / "thesis.tex").write_text("mine")
    with pytest.raises(ScoresError, match=r"holds thesis.tex, which score did not write"):
        check_target(scores)
