"""docs/deployment.md: its table "I changed … what runs again", row by row, with real DVC."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.fetch.hub_server import Hub, Repositories, serve
from tests.models import save_gpt2, save_lora
from tests.pages import page, section, table
from tests.project import ROOT, copy_project, run
from tests.test_dvc import CONFIGS, ran

PAGE = page("deployment.md")
ROWS = dict(table(PAGE, "I changed"))

# A value for each key that a row names, other than that of the project in ``project.py``.
VALUES: dict[str, Any] = {
    "fetch.model": "owner/tiny",
    "fetch.revision": "v1",
    "prepare.limit": 20,
    "prepare.keep": ["topic", "half"],
    "predict.generation": {"max_new_tokens": 6, "num_beams": 1},
    "predict.template": "say: {text}",
    "predict.rows": ":8",
    "predict.chunk_rows": 3,
    "predict.max_batch_rows": 3,
    "predict.seed": 1,
    "predict.adapter": "lora",
    "predict.device": "auto",
    "predict.device_map": "auto",
    "predict.max_memory": {"cpu": "1GiB"},
    "score.metrics": ["rouge", "chrf"],
    "score.normalize": ["lowercase"],
    "score.decode": {"skip_special_tokens": False, "clean_up_tokenization_spaces": None},
    "score.by": ["topic"],
    "score.confidence": 0.9,
    "score.replicates": 40,
    "score.seed": 1,
    "score.n_jobs": 2,
    "score.scheduler": "tcp://host:8786",
    "score.backend": "threading",
}


def example(row: int) -> dict[str, str]:
    """A row of the data set."""
    texts = {"text": f"text {row} of the fox", "summary": f"summary {row} the fox"}
    return {"id": f"r{row}", **texts, "topic": "ab"[row % 2], "half": "cd"[row // 12 % 2]}


EXAMPLES = [example(row) for row in range(24)]


class Project:
    """A project that was run, with a model and an adapter beside it, and a hub on loopback."""

    def __init__(self, folder: Path, hub: Hub) -> None:
        self.folder = folder
        self.hub = hub
        self.widths = itertools.count(40, 8)  # each another model
        self.params: dict[str, dict[str, Any]] = YAML(typ="safe").load(folder / "params.yaml")

    def repro(self) -> list[str]:
        """The stages that ran."""
        return ran(run(self.folder, "dvc", "repro").stdout)

    def set(self, key: str, value: Any) -> Any:
        """Put ``value`` into params.yaml; returns what stood there."""
        section, name = key.split(".")
        before = self.params[section][name]
        assert before != value, key
        self.params[section][name] = value
        with (self.folder / "params.yaml").open("w") as handle:
            YAML(typ="safe").dump(self.params, handle)
        return before

    def edit(self, path: str, more: str) -> None:
        """Append to a file."""
        assert (self.folder / path).is_file()
        with (self.folder / path).open("a") as handle:
            handle.write(more)

    def move_branch(self) -> None:
        """Another model under the same name on the hub; nothing of the old one is remembered."""
        other = save_gpt2(self.folder.parent / "on-the-hub", pad=False, width=next(self.widths))
        self.hub.repositories = repositories(other)
        shutil.rmtree(self.folder.parent / "hub")

    def train_adapter(self, seed: int) -> None:
        """An adapter for the model that the hub holds now."""
        save_lora(self.folder / "lora", self.folder.parent / "on-the-hub", seed=seed)


def repositories(model: Path) -> Repositories:
    """A hub that holds ``model``."""
    return {("models", "owner/tiny"): {path.name: path.read_bytes() for path in model.iterdir()}}


Change = Callable[[Project], object]


def comment(path: str) -> Change:
    return lambda project: project.edit(path, "\n# a comment\n")


def remove(*names: str) -> Change:
    def removed(project: Project) -> None:
        for name in names:
            path = project.folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return removed


# The rows that are not a list of keys: what is done, one after the other.
CASES: dict[str, list[Change]] = {
    "nothing": [lambda project: None],
    "a key of `score` back to what it was": [lambda project: project.set("score.seed", 0)],
    "a key of `predict` back to what it was": [lambda project: project.set("predict.seed", 0)],
    "my adapter, trained again into the same folder": [
        lambda project: project.train_adapter(seed=2)
    ],
    "`pipeline/predict/VERSION`": [
        lambda project: (project.folder / "pipeline/predict/VERSION").write_text("1000\n")
    ],
    "rows of my data set": [
        lambda project: project.edit("rows.jsonl", json.dumps(example(len(EXAMPLES))) + "\n")
    ],
    "my model, trained again into the same folder": [
        lambda project: save_gpt2(project.folder / "gpt2", pad=False, width=16)
    ],
    "a branch on the hub has moved": [Project.move_branch],
    "a source of score: `pipeline/score`, `pipeline/store`, `stages/score.py`": [
        comment("pipeline/score/run.py"),
        comment("pipeline/store/card.py"),
        comment("stages/score.py"),
    ],
    "a source of report: `pipeline/report`, `stages/report.py`": [
        comment("pipeline/report/page.py"),
        comment("stages/report.py"),
    ],
    "a source of prepare: `pipeline/prepare`, `pipeline/local.py`": [
        comment("pipeline/prepare/roles.py"),
        comment("pipeline/local.py"),
    ],
    "a source of fetch or of predict": [
        comment("pipeline/fetch/folder.py"),
        comment("pipeline/predict/generate.py"),
        comment("stages/predict.py"),
    ],
    "`data/predictions`, `data/scores` or `report.html` is gone": [
        remove("data/predictions"),
        remove("data/scores", "data/plots"),
        remove("report.html"),
    ],
    "`data/model` is gone": [remove("data/model")],
    "`data/.partial` and `data/.cache` are gone": [remove("data/.partial", "data/.cache")],
}
# What has to be done before a key can be changed as its row says.
BEFORE: dict[str, Change] = {
    "predict.adapter": lambda project: project.train_adapter(seed=1),
    "fetch.revision": Project.move_branch,
}
# Put back before the next row: they would make this machine, without a GPU, run otherwise.
PUT_BACK = {"predict.device_map", "predict.max_memory"}


def stages_of(cell: str) -> list[str]:
    """``predict, score, report; a remark`` -> the stages."""
    names = re.split("[;:]", cell)[0].strip()
    return [] if names == "nothing" else names.split(", ")


def keys_of(cell: str) -> list[str]:
    """The keys that a row is made of; none where it says something else."""
    keys = re.findall(r"`([a-z]+\.[a-z_]+)`", cell)
    return keys if cell == ", ".join(f"`{key}`" for key in keys) else []


def test_every_row_of_the_table_has_its_case() -> None:
    assert {row for row in ROWS if not keys_of(row)} == set(CASES)
    named = [key for row in ROWS for key in keys_of(row)]
    assert sorted(named) == sorted(VALUES)
    keys = {f"{section}.{key}" for section in CONFIGS for key in CONFIGS[section].__struct_fields__}
    assert set(named) <= keys
    assert {key for key in keys if key.startswith(("fetch.", "score."))} <= set(named)


def test_the_picture_shows_every_output_and_where_it_goes() -> None:
    picture = section(PAGE, "## Who holds what").partition("The weights")[0]
    gpu = " ".join(re.findall("^    │([^│]+)│", picture, flags=re.MULTILINE))
    middle = " ".join(re.findall("│(?:   |──►|◄─►)│([^│]+)│", picture))
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]
    for stage in stages.values():
        for out in (*stage["outs"], *stage.get("plots", ()), *stage.get("metrics", ())):
            (name, options), *_ = (out if isinstance(out, dict) else {out: {}}).items()
            if name == "metrics.json":  # in git
                assert name in middle
                continue
            assert name in gpu, name
            moved = options.get("cache", True)
            assert (name.removeprefix("data/") in middle.split()) == moved, name


@pytest.mark.slow
def test_each_row_of_the_table(tmp_path: Path, gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows in the page's order, in one project, each on top of those before."""
    folder = copy_project(tmp_path / "project", Path("./gpt2"))
    shutil.copytree(gpt2, folder / "gpt2")
    (folder / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in EXAMPLES))
    hub_model = save_gpt2(tmp_path / "on-the-hub", pad=False, width=20)
    with serve(repositories(hub_model)) as hub:
        for name, value in (
            ("HF_ENDPOINT", hub.endpoint),
            ("HF_HOME", str(tmp_path / "hub")),
            ("HF_HUB_OFFLINE", "0"),
            ("HF_HUB_DISABLE_TELEMETRY", "1"),
        ):
            monkeypatch.setenv(name, value)
        project = Project(folder, hub)
        project.set("fetch.model", "./gpt2")
        project.set("prepare.keep", ["topic"])
        assert project.repro() == ["fetch", "prepare", "predict", "score", "report"]
        for row, cell in ROWS.items():
            for what, change in changes(row):
                undo = change(project)
                assert project.repro() == stages_of(cell), what
                if what in PUT_BACK:
                    project.set(what, undo)
            if row == "a branch on the hub has moved":  # do what the page says then
                assert "`dvc repro --force fetch`" in cell
                assert ran(run(folder, "dvc", "repro", "--force", "fetch").stdout) == ["fetch"]
                assert project.repro() == ["predict", "score", "report"]


def changes(row: str) -> Iterator[tuple[str, Change]]:
    """What is done for a row: each change, and what to call it."""
    for key in keys_of(row):

        def change(project: Project, key: str = key) -> object:
            BEFORE.get(key, lambda project: None)(project)
            return project.set(key, VALUES[key])

        yield key, change
    for number, case in enumerate(CASES.get(row, ())):
        yield f"{row} ({number})", case
