from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.local import holds, link_file, local_path, new_folder, put, remove


@pytest.mark.parametrize(
    "name",
    ["/x/y", "./x", "../x", ".", "~/x", "a\\b", "C:/x", "runs/", "runs/a/b", "data.jsonl"],
)
def test_what_can_only_be_a_path_is_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_path(name, (".jsonl",)) is not None


@pytest.mark.parametrize("name", ["gpt2", "owner/model", "owner/model-v1.0"])
def test_what_looks_like_a_hub_id_is_a_path_only_where_it_exists(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_path(name) is None
    Path(name).mkdir(parents=True)
    assert local_path(name) == Path(name)


def test_a_tilde_expands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_path("~/m") == tmp_path / "m"


def test_a_link_is_relative_where_the_path_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("models").mkdir()
    Path("data").mkdir()
    Path("models/w").write_text("w")
    assert link_file(Path("models/w"), Path("data/relative"))
    assert link_file(tmp_path / "models/w", Path("data/absolute"))
    assert os.readlink("data/relative") == os.path.join("..", "models", "w")
    assert os.readlink("data/absolute") == str(tmp_path / "models/w")
    assert Path("data/relative").read_text() == Path("data/absolute").read_text() == "w"


def test_a_relative_link_is_right_where_the_data_folder_is_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, disk = tmp_path / "project", tmp_path / "deep/er/disk"
    project.mkdir()
    disk.mkdir(parents=True)
    monkeypatch.chdir(project)
    os.symlink(disk, "data")
    Path("w").write_text("w")
    assert link_file(Path("w"), Path("data/w"))
    assert Path("data/w").read_text() == "w"


def test_where_links_cannot_be_made_the_caller_hears_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise OSError("symbolic link privilege not held")

    monkeypatch.setattr(os, "symlink", refuse)
    assert not link_file(tmp_path / "a", tmp_path / "b")


def test_new_folder_replaces_in_one_step(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "model"
    with new_folder(target) as into:
        (into / "a").write_text("1")
        assert not target.exists()
    with new_folder(target) as into:
        (into / "b").write_text("2")
        assert [path.name for path in target.iterdir()] == ["a"]
    assert [path.name for path in target.iterdir()] == ["b"]
    assert [path.name for path in target.parent.iterdir()] == ["model"]


def test_an_error_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").touch()

    def fail_half_way() -> None:
        with new_folder(target) as into:
            (into / "new").touch()
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        fail_half_way()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (target / "old").exists()


def test_replacing_a_link_leaves_what_it_points_to(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "weights").touch()
    target = tmp_path / "model"
    target.symlink_to(theirs)
    with new_folder(target) as into:
        (into / "new").touch()
    assert not target.is_symlink()
    assert (theirs / "weights").exists()

    link = tmp_path / "link"
    link.symlink_to(theirs)
    remove(link)
    remove(tmp_path / "nothing")
    assert (theirs / "weights").exists()
    assert not link.is_symlink()


def test_put_replaces_a_file_by_a_folder_and_back(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("file")
    (tmp_path / "new").mkdir()
    put(tmp_path / "new", tmp_path / "target")
    assert (tmp_path / "target").is_dir()
    (tmp_path / "new").write_text("file")
    put(tmp_path / "new", tmp_path / "target")
    assert (tmp_path / "target").read_text() == "file"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_holds_follows_links(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "model")
    assert holds(tmp_path / "model", tmp_path / "alias")
    assert holds(tmp_path / "model", tmp_path / "model" / "inner")
    assert not holds(tmp_path / "model", tmp_path / "model-2")
