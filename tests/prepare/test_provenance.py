"""``data/source``, by itself and in a DVC project."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.config import parse_section
from pipeline.prepare.config import PrepareConfig
from pipeline.prepare.prepare import prepare
from tests.prepare.files import pair, run, write_jsonl


def test_a_file_is_linked(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [pair(0)])
    run(tmp_path, dataset=path)
    assert (tmp_path / "source").is_symlink()
    assert (tmp_path / "source").resolve() == path.resolve()


def test_a_saved_data_set_is_linked_file_by_file(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    data = Dataset.from_list([pair(0)])
    DatasetDict({"test": data, "train": data}).save_to_disk(tmp_path / "saved")
    for _ in range(2):  # the second time over the first
        run(tmp_path, dataset=tmp_path / "saved")
        source = tmp_path / "source"
        files = [path.relative_to(source) for path in source.rglob("*") if not path.is_dir()]
        assert Path("dataset_dict.json") in files
        assert Path("test", "data-00000-of-00001.arrow") in files
        assert all((source / path).is_symlink() for path in files)
    assert (tmp_path / "saved" / "test" / "state.json").exists()


def test_one_kind_replaces_the_other_and_touches_nothing_of_the_persons(tmp_path: Path) -> None:
    from datasets import Dataset

    path = write_jsonl(tmp_path / "d.jsonl", [pair(0)])
    content = path.read_bytes()
    Dataset.from_list([pair(0)]).save_to_disk(tmp_path / "saved")
    before = sorted(os.listdir(tmp_path / "saved"))
    for dataset in (path, tmp_path / "saved", path, tmp_path / "saved"):
        run(tmp_path, dataset=dataset)
    run(tmp_path, limit=1)
    assert json.loads((tmp_path / "source").read_text())["dataset"] is None
    assert path.read_bytes() == content
    assert sorted(os.listdir(tmp_path / "saved")) == before
    assert sorted(os.listdir(tmp_path)) == ["d.jsonl", "examples.parquet", "saved", "source"]


@pytest.mark.parametrize("saved", [False, True])
def test_without_symbolic_links_it_is_a_note_and_said(
    saved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datasets import Dataset

    def refuse(*args: object) -> None:
        raise OSError("symbolic link privilege not held")

    path = write_jsonl(tmp_path / "d.jsonl", [pair(0)])
    if saved:
        path = tmp_path / "saved"
        Dataset.from_list([pair(0)]).save_to_disk(path)
    monkeypatch.setattr(os, "symlink", refuse)
    said: list[str] = []
    config = parse_section({"dataset": str(path)}, "prepare", PrepareConfig)
    prepare(config, tmp_path / "examples.parquet", tmp_path / "source", announce=said.append)
    assert json.loads((tmp_path / "source").read_text()) == {"dataset": str(path)}
    assert len(said) == 1
    assert f"DVC will not notice when {path} changes" in said[0]


DVC_YAML = """
stages:
  fetch:
    cmd: {python} -m stages.fetch
    params: [fetch]
    outs:
    - data/model: {{cache: false}}
  prepare:
    cmd: {python} -m stages.prepare
    params: [prepare]
    outs:
    - data/examples.parquet
    - data/source: {{cache: false}}
"""


def test_dvc_sees_the_persons_files_change_and_leaves_them_alone(
    gpt2: Path, tmp_path: Path
) -> None:
    pytest.importorskip("dvc")
    project, mine = tmp_path / "project", tmp_path / "mine"
    project.mkdir()
    model = mine / "model"
    model.mkdir(parents=True)
    for path in gpt2.iterdir():
        (model / path.name).write_bytes(path.read_bytes())
    data = write_jsonl(mine / "d.jsonl", [pair(0)])
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (mine, model, *model.iterdir())}
    (project / "dvc.yaml").write_text(DVC_YAML.format(python=sys.executable))
    params = "fetch: {model: ../mine/model}\nprepare: {dataset: ../mine/d.jsonl}\n"
    (project / "params.yaml").write_text(params)

    def dvc(*arguments: str) -> str:
        command = [sys.executable, "-m", "dvc", *arguments]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    dvc("init", "--no-scm", "--quiet")
    dvc("repro", "--quiet")
    assert "up to date" in dvc("repro")

    write_jsonl(data, [pair(0), pair(1)])  # the same name, another content
    assert dvc("repro").count("Running stage") == 1
    (model / "config.json").write_text((gpt2 / "config.json").read_text() + "\n")
    assert "Running stage 'fetch'" in dvc("repro")
    assert "up to date" in dvc("repro")

    dvc("repro", "--force", "--quiet")
    dvc("remove", "fetch", "--outs")
    dvc("remove", "prepare", "--outs")
    assert not (project / "data" / "model").exists()
    assert {path: stat.S_IMODE(path.stat().st_mode) for path in modes} == modes
    assert data.read_text().count("\n") == 2
