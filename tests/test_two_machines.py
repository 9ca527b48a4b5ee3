"""docs/two-machines.md, command by command: two clones with a remote, and a copied folder.

The second machine is a clone with the environment that ``make score`` makes: real, and without
torch. While it works, the model and the data set are moved out of reach.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.pages import blocks, page, section
from tests.project import ROOT, copy_project, environment, run
from tests.s3_server import s3_bucket
from tests.test_dvc import ran

PAGE = page("two-machines.md")
SCORED = ("metrics.json", "data/scores", "data/plots")
HEAVY = ("torch", "transformers", "datasets", "evaluate", "pandas")


class Machine:
    """A clone, and the environment of its commands."""

    def __init__(self, origin: Path, folder: Path, variables: dict[str, str]) -> None:
        subprocess.run(["git", "clone", "-q", origin, folder], check=True)
        self.folder = folder
        self.variables = variables
        self.sh(f"git config user.email {folder.name}@example.org; git config user.name test")

    def sh(self, script: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run lines of a page as a person would type them, up to the first that fails."""
        done = subprocess.run(
            ["bash", "-ec", script], cwd=self.folder, env=self.variables, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done

    def files(self) -> dict[str, bytes]:
        """All that scoring wrote."""
        found = [self.folder / name for name in SCORED]
        found += [path for folder in found[1:] for path in folder.rglob("*") if path.is_file()]
        return {str(p.relative_to(self.folder)): p.read_bytes() for p in found if p.is_file()}


def variables_with(first: Path) -> dict[str, str]:
    """Variables of a shell in which ``first`` leads PATH, without those of a make around us."""
    variables = environment() | {"PATH": f"{first}{os.pathsep}/usr/local/bin:/usr/bin:/bin"}
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "VIRTUAL_ENV", "PYTHON"):
        variables.pop(name, None)
    return variables


def gpu_machine(origin: Path, folder: Path, extra: dict[str, str]) -> Machine:
    """All is installed: this interpreter's environment stands for the full .venv."""
    variables = variables_with(Path(sys.executable).parent) | {"PYTHONPATH": str(folder)}
    machine = Machine(origin, folder, variables | extra)
    (folder / ".venv").mkdir()
    (folder / ".venv/.installed").touch()  # newer than the lock, so make sets up nothing
    return machine


def cpu_machine(origin: Path, folder: Path, extra: dict[str, str]) -> Machine:
    """Only Python is there; ``make`` makes the environment."""
    variables = variables_with(folder / ".venv/bin") | {"PYTHON": sys.executable}
    return Machine(origin, folder, variables | extra)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory, gpt2: Path) -> Path:
    """A bare repository; its model and data set lie outside of it, in ``only-there``."""
    place = tmp_path_factory.mktemp("machines")
    shutil.copytree(gpt2, place / "only-there/gpt2")
    project = copy_project(place / "project", place / "only-there/gpt2")
    shutil.move(project / "rows.jsonl", place / "only-there/rows.jsonl")
    params = project / "params.yaml"
    text = params.read_text()
    params.write_text(
        text.replace("dataset: rows.jsonl", f"dataset: {place}/only-there/rows.jsonl")
    )
    run(project, "git", "add", "-A")
    run(project, "git", "commit", "-qm", "Model and data of the GPU machine")
    run(place, "git", "clone", "-q", "--bare", "project", "origin.git")
    return place / "origin.git"


@pytest.fixture(scope="module")
def scoring_environment(origin: Path) -> Path:
    """The .venv that ``make`` makes for scoring."""
    machine = cpu_machine(origin, origin.parent / "environment", {})
    machine.sh("make score-env")
    return machine.folder / ".venv"


@pytest.fixture(params=["folder", "bucket"])
def remote(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Name, the page's block that adds it, and variables with its credentials."""
    folder, bucket = blocks(section(PAGE, "### The remote, once"))
    if request.param == "folder":
        assert "/mnt/shared/twophase" in folder
        yield "folder", folder.replace("/mnt/shared", str(tmp_path)), {}
        return
    with s3_bucket("bucket") as served:
        assert "s3://bucket/" in bucket
        yield (
            "bucket",
            bucket.replace("https://s3.example.org", served.endpoint),
            (served.environment),
        )


@pytest.mark.slow
def test_two_clones_and_a_remote(
    origin: Path,
    scoring_environment: Path,
    remote: tuple[str, str, dict[str, str]],
    tmp_path: Path,
) -> None:
    kind, add_remote, credentials = remote
    run(tmp_path, "git", "clone", "-q", "--bare", str(origin), "origin.git")
    origin_here, only_there = tmp_path / "origin.git", origin.parent / "only-there"
    (predict,) = blocks(section(PAGE, "### 1. On the GPU machine: predict"))
    score, bucket_package, commit = blocks(section(PAGE, "### 2. On the other machine: score"))
    (back,) = blocks(section(PAGE, "### 3. Back on the GPU machine"))

    first = gpu_machine(origin_here, tmp_path / "first", credentials)
    first.sh("\n".join(line for line in add_remote.splitlines() if "pip" not in line))
    assert ran(first.sh(predict).stdout) == ["fetch", "prepare", "predict", "score", "report"]

    out_of_reach = only_there.with_name("out-of-reach")
    only_there.rename(out_of_reach)
    try:
        hub = {"HF_HOME": str(tmp_path / "hub")}
        second = cpu_machine(origin_here, tmp_path / "second", credentials | hub)
        (second.folder / ".venv").symlink_to(scoring_environment)
        (second.folder / ".git/info/exclude").write_text(".venv\n")
        if kind == "bucket":
            second.sh(bucket_package)
        absent = [f"assert importlib.util.find_spec('{name}') is None" for name in HEAVY]
        second.sh(f'python -c "import importlib.util; {"; ".join(absent)}"')

        # what was scored already
        done = second.sh(score).stdout
        assert ran(done) == []
        assert "bleu" in done
        assert second.files() == first.files()
        # other metrics
        params = second.folder / "params.yaml"
        metrics = "metrics: [rouge, bleu, chrf]"
        assert metrics in PAGE
        params.write_text(params.read_text().replace("metrics: [rouge, bleu]", metrics))
        done = second.sh("make score").stdout
        assert ran(done) == ["score"]
        assert "chrf" in done
        assert ran(second.sh("make score").stdout) == []
        scored = second.files()

        # the wrong command
        wrong = second.sh("dvc repro", check=False)
        assert wrong.returncode not in (0, None)
        (said,) = [line for line in PAGE.splitlines() if "    Error: fetch needs" in line]
        assert said.strip().removesuffix(" …") in wrong.stderr
        assert "type `make score`" in wrong.stderr
        assert "`dvc repro --pull --allow-missing score`" in " ".join(wrong.stderr.split())
        assert "Traceback" not in wrong.stderr
        assert ran(wrong.stdout) == ["fetch"]
        assert second.files() == scored

        second.sh(commit)
        assert second.sh("git status --porcelain").stdout == ""
        assert ran(second.sh("dvc repro --pull --allow-missing report").stdout) == ["report"]
        assert (second.folder / "report.html").exists()

        # neither model nor data set came
        data = {path.name for path in (second.folder / "data").iterdir()}
        assert not data & {"model", "examples.parquet", "source", ".partial"}
        assert not (tmp_path / "hub").exists()
        lock = YAML(typ="safe").load(second.folder / "dvc.lock")
        (examples,) = (
            out["md5"]
            for out in lock["stages"]["prepare"]["outs"]
            if out["path"] == "data/examples.parquet"
        )
        cached = {
            path.parent.name + path.name
            for path in (second.folder / ".dvc/cache/files/md5").glob("*/*")
        }
        assert cached
        assert examples not in cached
    finally:
        out_of_reach.rename(only_there)

    assert ran(first.sh(back).stdout) == ["report"]
    assert first.files() == scored
    assert "up to date" in first.sh("dvc status").stdout
    # what the first machine would have got
    first.sh("twophase score --no-cache --scores s/data/scores --plots s/data/plots --metrics s/m")
    own = first.folder / "s"
    assert (own / "m").read_bytes() == scored["metrics.json"]
    for name, content in scored.items():
        if name.startswith("data/"):
            assert (own / name).read_bytes() == content, name


def test_what_make_score_is() -> None:
    """The page shows the recipe as it stands in the Makefile."""
    recipe = (ROOT / "Makefile").read_text().partition("\nscore: ")[2].partition("\n\n")[0]
    commands = [line.strip("\t@") for line in recipe.splitlines() if line.startswith("\t")]
    (shown,) = blocks(section(PAGE, "### What runs where"))
    assert commands == [*shown.splitlines(), "twophase report --show"]


STAND_IN = """\
#!/bin/sh
# Notes what it is asked to do, and makes the folder that `python -m venv` would make.
echo "$(basename "$0") $*" >> "$NOTES"
if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi
"""


def test_which_environment_make_sets_up(tmp_path: Path) -> None:
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("python", "dvc", "twophase", "ruff", "mypy", "lint-imports", "pytest"):
        (commands / name).write_text(STAND_IN)
        (commands / name).chmod(0o755)
    notes = tmp_path / "notes"
    variables = variables_with(commands) | {"NOTES": str(notes), "PYTHON": str(commands / "python")}

    def installs(target: str) -> list[str]:
        notes.write_text("")
        subprocess.run(["make", "-s", target], cwd=tmp_path, env=variables, check=True)
        lines = notes.read_text().splitlines()
        assert any(line.startswith(("dvc", "pytest")) for line in lines)
        return [line.rpartition(" ")[2] for line in lines if " pip install " in line]

    assert installs("score") == [".[dvc,report]"]
    assert installs("score") == []
    assert installs("repro") == [".[dev]"]  # completes it
    assert installs("score") == installs("test") == installs("repro") == []
    later = (tmp_path / ".venv/.installed").stat().st_mtime + 10
    os.utime(tmp_path / "constraints.txt", (later, later))
    assert installs("score")[:1] == [".[dev]"]  # one environment, not two


def copy_commands(source: Path) -> str:
    """The page's commands without DVC; ``cp -a`` where there is no rsync."""
    (commands,) = blocks(section(PAGE, "## Without DVC"))
    assert "rsync -a gpu-box:twophase/" in commands
    commands = commands.replace("gpu-box:twophase/", f"{source}/")
    return commands if shutil.which("rsync") else commands.replace("rsync -a", "cp -a")


def test_without_dvc(tmp_path: Path) -> None:
    source, here = tmp_path / "twophase", tmp_path / "here"
    here.mkdir()
    source.mkdir()
    (source / "hyp.txt").write_text("a cat\na dog\n")
    (source / "ref.txt").write_text("the cat\na dog\n")
    files = ("--hypotheses", "hyp.txt", "--reference", "ref.txt")
    run(source, "twophase", "ingest", *files, "--out", "data/predictions")
    variables = environment() | {"PYTHONPATH": str(ROOT)}

    def sh(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-ec", script], cwd=here, env=variables, capture_output=True, text=True
        )

    done = sh(copy_commands(source))
    assert done.returncode == 0, done.stderr
    assert "rouge1" in done.stdout
    for name in SCORED:
        assert (here / name).exists()

    chunk = here / "predictions/chunk-00000.parquet"
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    _, check, score, _ = copy_commands(source).splitlines()
    damaged = sh(check)
    assert damaged.returncode == 1
    assert "chunk-00000.parquet: FAILED" in damaged.stdout
    refused = sh(score)
    assert refused.returncode == 1
    assert "chunk-00000.parquet" in refused.stderr
