"""examples/sweep: a grid by one command, and what runs again when it grows or changes.

Once for real; and, for each line of the table in its README, with a stand-in for ``twophase`` that
writes files which depend on what the real ones depend on.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipeline.config import load_section
from pipeline.predict.config import PredictConfig
from pipeline.prepare.config import PrepareConfig
from pipeline.score.config import ScoreConfig
from tests.models import save_gpt2
from tests.project import ROOT, environment

SWEEP = ROOT / "examples/sweep"


def test_the_settings_of_each_data_set_are_accepted() -> None:
    grid = YAML(typ="safe").load(SWEEP / "grid.yaml")
    assert {path.stem for path in (SWEEP / "datasets").iterdir()} == set(grid["dataset"])
    for path in (SWEEP / "datasets").iterdir():
        load_section(path, "prepare", PrepareConfig)
        predict = load_section(path, "predict", PredictConfig)
        assert predict.generation["max_new_tokens"]
        load_section(path, "score", ScoreConfig)


def run(
    folder: Path, *command: str, check: bool = True, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """``command`` with the ``twophase`` of this working tree."""
    env = environment() | {"PYTHONPATH": str(ROOT)} | dict(env or {})
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def ran(done: subprocess.CompletedProcess[str]) -> set[str]:
    lines = done.stdout.splitlines()
    return {line.split("'")[1] for line in lines if line.startswith("Running stage")}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def copy_sweep(folder: Path) -> Path:
    """The folder as a person has it: copied, with data sets and a shorter list of checkpoints."""
    shutil.copytree(SWEEP, folder, ignore=shutil.ignore_patterns("cache", "tmp"))
    for name, reference in (("news", "summary"), ("talk", "answer")):
        rows = [{"text": f"{name} {row} the fox", reference: f"the fox {row}"} for row in range(8)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
        edit(folder / f"datasets/{name}.yaml", "max_new_tokens: ", "max_new_tokens: 8 # ")
        edit(folder / f"datasets/{name}.yaml", "template: ", 'template: "{text}" # ')
    edit(folder / "grid.yaml", "[step-1000, step-2000]", "[step-1000]")
    for command in (
        ["git", "init", "-q"],
        ["git", "config", "user.email", "test@example.org"],
        ["git", "config", "user.name", "test"],
    ):
        run(folder, *command)
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    run(folder, "git", "add", "-A")
    run(folder, "git", "commit", "-qm", "commit")


def stages(kinds: str, models: str, checkpoints: str, datasets: str) -> set[str]:
    return {
        f"{kind}@{model}-{checkpoint}-{dataset}"
        for kind in kinds.split()
        for model in models.split()
        for checkpoint in checkpoints.split()
        for dataset in datasets.split()
    }


@pytest.mark.slow
def test_one_command_evaluates_a_grid(tmp_path: Path) -> None:
    sweep = copy_sweep(tmp_path / "sweep")
    for width, model in ((16, "small"), (32, "large")):
        for step in (1000, 2000):
            save_gpt2(sweep / f"checkpoints/{model}/step-{step}", width=width, seed=step)
    first = run(sweep, "dvc", "repro")
    assert ran(first) == {
        "fetch@small-step-1000", "fetch@large-step-1000", "prepare@news", "prepare@talk",
        *stages("predict score", "small large", "step-1000", "news talk"), "compare",
    }  # fmt: skip
    heading = "model checkpoint news rougeL news bleu talk rougeL talk bleu"
    assert heading in [" ".join(line.split()) for line in first.stdout.splitlines()]
    assert (sweep / "grid.md").read_text().startswith("| model | checkpoint | news rougeL |")
    assert "Data and pipelines are up to date." in run(sweep, "dvc", "repro").stdout
    # Weights are in no cache, and what is not ignored is worth committing.
    cached = [path.stat().st_size for path in (sweep / ".dvc/cache").rglob("*") if path.is_file()]
    weights = [path.stat().st_size for path in sweep.rglob("checkpoints/*/*/model.safetensors")]
    assert max(cached) < min(weights)
    run(sweep, "git", "add", "-A")
    added = run(sweep, "git", "diff", "--cached", "--name-only").stdout.split()
    assert set(added) == {
        "dvc.lock", "grid.md", "grid.csv",
        *(f"runs/{d}/{m}/step-1000/metrics.json"
          for d in ("news", "talk") for m in ("small", "large")),
    }  # fmt: skip
    assert "rougeL" in run(sweep, "dvc", "metrics", "show").stdout

    # One checkpoint more.
    edit(sweep / "grid.yaml", "[step-1000]", "[step-1000, step-2000]")
    assert ran(run(sweep, "dvc", "repro")) == {
        "fetch@small-step-2000", "fetch@large-step-2000",
        *stages("predict score", "small large", "step-2000", "news talk"), "compare",
    }  # fmt: skip
    lines = list(csv.DictReader((sweep / "grid.csv").read_text().splitlines()))
    assert len(lines) == 4 * 4
    for line in lines:
        place = sweep / f"runs/{line['dataset']}/{line['model']}/{line['checkpoint']}/metrics.json"
        assert json.loads(place.read_text())[line["score"]] == float(line["value"])

    # A key that changes no token: predict finds its sets finished.
    edit(sweep / "datasets/news.yaml", "  chat: false", "  chat: false\n  device: cpu")
    again = run(sweep, "dvc", "repro")
    assert ran(again) == stages("predict", "small large", "step-1000 step-2000", "news")
    assert again.stdout.count("(0 made, 1 kept)") == 4


TWOPHASE = """\
import hashlib, os, shutil, sys
from pathlib import Path
from ruamel.yaml import YAML

stage, *words = sys.argv[1:]
options = dict(zip(words, words[1:]))


def section(name):
    return str(YAML(typ="safe").load(Path(options["--params"]))[name])


def content(path):
    path = Path(path)
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return b"".join(file.read_bytes() for file in files)


def write(path, *parts):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(hashlib.sha256(repr(parts).encode()).hexdigest())


if stage == "fetch":
    weights = Path(options["-S"].partition("=")[2], "weights")
    if not weights.exists():
        sys.exit(f"{weights} is not there")
    Path(options["--model"]).mkdir(parents=True)
    Path(options["--model"], "weights").symlink_to(weights.absolute())
elif stage == "prepare":
    data = YAML(typ="safe").load(Path(options["--params"]))["prepare"]["dataset"]
    write(options["--examples"], section("prepare"), content(data))
    Path(options["--source"]).parent.mkdir(exist_ok=True)
    Path(options["--source"]).symlink_to(Path(data).absolute())
elif stage == "predict":
    write(options["--predictions"] + "/chunk", section("predict"), content(options["--model"]),
          content(options["--examples"]))
    write(options["--telemetry"])
elif stage == "score":
    predictions = content(options["--predictions"])
    for path in (options["--scores"] + "/summary.json", options["--plots"] + "/bleu.csv"):
        write(path, section("score"), predictions)
    Path(options["--metrics"]).write_text('{"bleu": 1.5}')
else:
    axes = YAML(typ="safe").load(Path("grid.yaml"))
    for dataset in axes["dataset"]:
        for model in axes["model"]:
            for checkpoint in axes["checkpoint"]:
                there = Path(f"scores/{dataset}/{model}/{checkpoint}/summary.json").exists()
                print(dataset, model, checkpoint, "scored" if there else "missing")
    for name in ("grid.md", "grid.csv"):
        write(name, words, content("scores"))
"""


@pytest.fixture
def stood_in(tmp_path: Path) -> dict[str, str]:
    """A PATH with the stand-in."""
    command = tmp_path / "bin/twophase"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\n{TWOPHASE}")
    command.chmod(0o755)
    return {"PATH": f"{command.parent}{os.pathsep}{environment()['PATH']}"}


def write_weights(sweep: Path, model: str, checkpoint: str, text: str = "weights") -> None:
    folder = sweep / "checkpoints" / model / checkpoint
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights").write_text(f"{model} {checkpoint} {text}")


@pytest.mark.slow
def test_what_runs_again(tmp_path: Path, stood_in: dict[str, str]) -> None:
    sweep = copy_sweep(tmp_path / "sweep")
    for model in ("small", "large"):
        for checkpoint in ("step-1000", "step-2000"):
            write_weights(sweep, model, checkpoint)

    def repro(*options: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return run(sweep, "dvc", "repro", *options, check=check, env=stood_in)

    assert len(ran(repro())) == 2 + 2 + 4 + 4 + 1
    assert ran(repro()) == set()
    commit(sweep)

    # an entry less, and back
    edit(sweep / "grid.yaml", "[small, large]", "[small]")
    assert ran(repro()) == {"compare"}
    edit(sweep / "grid.yaml", "[small]", "[small, large]")
    assert ran(repro()) <= {"compare"}
    # the table
    edit(sweep / "grid.yaml", "metric: [rougeL, bleu]", "metric: [bleu]")
    assert ran(repro()) == {"compare"}
    assert "--baseline small/step-1000 --metric bleu" in (sweep / "dvc.lock").read_text()
    # a section of a data set
    edit(sweep / "datasets/news.yaml", "metrics: [rouge, bleu]", "metrics: [bleu]")
    assert ran(repro()) == stages("score", "small large", "step-1000", "news") | {"compare"}
    edit(sweep / "datasets/news.yaml", "num_beams: 1", "num_beams: 2")
    news = stages("predict score", "small large", "step-1000", "news") | {"compare"}
    assert ran(repro()) == news
    # its rows, under the same name
    with (sweep / "news.jsonl").open("a") as rows:
        rows.write('{"text": "new", "summary": "new"}\n')
    assert ran(repro()) == {"prepare@news"} | news
    # a checkpoint, under the same name
    write_weights(sweep, "small", "step-1000", "trained on")
    assert ran(repro()) == {"fetch@small-step-1000", "compare"} | stages(
        "predict score", "small", "step-1000", "news talk"
    )
    # a data set more
    text = (sweep / "datasets/talk.yaml").read_text()
    (sweep / "datasets/more.v2.yaml").write_text(text.replace("talk.jsonl", "news.jsonl"))
    edit(sweep / "grid.yaml", "[news, talk]", "[news, talk, more.v2]")
    assert ran(repro()) == {"prepare@more.v2", "compare"} | stages(
        "predict score", "small large", "step-1000", "more.v2"
    )


@pytest.mark.slow
def test_one_that_is_broken_and_experiments(tmp_path: Path, stood_in: dict[str, str]) -> None:
    sweep = copy_sweep(tmp_path / "sweep")

    def dvc(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return run(sweep, "dvc", *words, check=check, env=stood_in)

    for model in ("small", "large"):
        for checkpoint in ("step-1000", "step-2000"):
            write_weights(sweep, model, checkpoint)
    write_weights(sweep, "large", "step-3000")
    edit(sweep / "grid.yaml", "[step-1000]", "[step-1000, step-3000]")

    # The others are made, and the table can be had with holes.
    broken = dvc("repro", "--keep-going", check=False)
    assert broken.returncode != 0
    assert "failed to reproduce 'fetch@small-step-3000'" in broken.stderr
    cells = stages("predict score", "small", "step-1000", "news talk")
    assert cells | stages("predict score", "large", "step-1000 step-3000", "news talk") <= ran(
        broken
    )
    assert not ran(broken) & stages("predict score", "small", "step-3000", "news talk")
    assert "compare" not in ran(broken)
    holes = dvc("repro", "--single-item", "compare").stdout.splitlines()
    assert [line for line in holes if line.endswith(" missing")] == [
        f"{dataset} small step-3000 missing" for dataset in ("news", "talk")
    ]
    write_weights(sweep, "small", "step-3000")
    assert ran(dvc("repro")) == {"fetch@small-step-3000", "compare"} | stages(
        "predict score", "small", "step-3000", "news talk"
    )
    commit(sweep)

    # A setting of one data set, and other lists.
    option = "datasets/news.yaml:score.metrics=[rouge, chrf]"
    assert ran(dvc("exp", "run", "-S", option)) == {"compare"} | stages(
        "score", "small large", "step-1000 step-3000", "news"
    )
    lists = "grid.yaml:checkpoint=[step-1000, step-2000, step-3000]"
    assert ran(dvc("exp", "run", "-S", lists)) == {
        "fetch@small-step-2000", "fetch@large-step-2000", "compare",
        *stages("predict score", "small large", "step-2000", "news talk"),
    }  # fmt: skip


@pytest.mark.slow
def test_another_machine_scores_what_is_predicted(tmp_path: Path, stood_in: dict[str, str]) -> None:
    sweep = copy_sweep(tmp_path / "sweep")
    for model in ("small", "large"):
        write_weights(sweep, model, "step-1000")
    run(sweep, "dvc", "remote", "add", "-d", "store", str(tmp_path / "remote"))
    run(sweep, "dvc", "repro", env=stood_in)
    commit(sweep)
    run(sweep, "dvc", "push")
    run(tmp_path, "git", "clone", "-q", str(sweep), "other")
    other = tmp_path / "other"
    edit(other / "datasets/news.yaml", "metrics: [rouge, bleu]", "metrics: [bleu]")
    run(other, "dvc", "pull", "--allow-missing", "score", env=stood_in)
    scored = run(other, "dvc", "repro", "--pull", "--allow-missing", "compare", env=stood_in)
    assert ran(scored) == stages("score", "small large", "step-1000", "news") | {"compare"}
    assert " missing\n" not in scored.stdout
    assert not (other / "weights").exists()
