"""docs/experiments.md, command by command, with real DVC and its queue."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import shutil
import time
from pathlib import Path

import psutil
import pytest
from ruamel.yaml import YAML

from tests.pages import blocks, page, section
from tests.project import copy_project, run
from tests.test_dvc import ran

PAGE = page("experiments.md")
LOADED = re.compile(r'<(?:script|link|img|image|iframe)\b[^>]*(?:src|href)="([^"]+)"')
OFFLINE = "The page holds its numbers and loads Vega from the\nweb"


def commands(heading: str) -> list[list[str]]:
    """The lines of the bash blocks under a heading, as a shell would split them."""
    return [
        shlex.split(line) for block in blocks(section(PAGE, heading)) for line in block.splitlines()
    ]


def value(project: Path, *path: str) -> object:
    found = YAML(typ="safe").load(project / "params.yaml")
    for name in path:
        found = found[name]
    return found


def at_work(project: Path) -> list[psutil.Process]:
    """Living processes that were started in the project, or know its path."""
    found = []
    for process in psutil.process_iter(["cwd", "cmdline", "status"]):
        about = [process.info["cwd"] or "", *(process.info["cmdline"] or [])]
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(
            str(project) in text for text in about
        ):
            found.append(process)
    return found


def wait_until_idle(project: Path, seconds: float = 600) -> None:
    """Until the queue's worker has ended by itself; what is left then is killed, and an error."""
    deadline = time.monotonic() + seconds
    while at_work(project) and time.monotonic() < deadline:
        time.sleep(0.2)
    left = at_work(project)
    for process in left:
        process.kill()
    assert not left


@pytest.fixture
def project(tmp_path: Path, gpt2: Path) -> Path:
    """A project that ran, with everything committed."""
    folder = copy_project(tmp_path / "project", gpt2)
    params = folder / "params.yaml"
    # the words of a random model are in no reference, its letters are
    params.write_text(params.read_text().replace("[rouge, bleu]", "[chrf]"))
    run(folder, "dvc", "repro")
    run(folder, "git", "add", "-A")
    run(folder, "git", "commit", "-qm", "Predict and score")
    return folder


@pytest.mark.slow
def test_experiments(project: Path) -> None:
    # other metrics: no prediction; the value stays
    (wider,) = commands("## Other metrics")
    assert ran(run(project, *wider).stdout) == ["score", "report"]
    assert value(project, "score", "metrics") == ["rouge", "chrf"]
    assert set(json.loads((project / "metrics.json").read_bytes())) > {"rouge1", "chrf"}
    run(project, "git", "checkout", "-q", ".")
    assert ran(run(project, "dvc", "repro").stdout) == []  # back, from the cache

    # the queue
    *queue, start, status = commands("## A queue")
    for command in queue:
        assert "--queue" in command
        run(project, *command)
    assert run(project, *status).stdout.count("Queued") == 3
    try:
        run(project, *start)
        wait_until_idle(project)
    finally:
        run(project, "dvc", "queue", "stop", "--kill", check=False)
    worker = "".join(path.read_text() for path in project.glob(".dvc/tmp/exps/celery/*.out"))
    assert run(project, *status).stdout.count("Success") == 3, worker
    logs = run(project, "dvc", "queue", "logs", "beams").stdout
    assert ran(logs) == ["predict", "score", "report"]  # -C spares fetch and prepare
    assert run(project, "dvc", "status").stdout.strip() == "Data and pipelines are up to date."

    # the right columns
    show, apply, *diffs = commands("## Which is best")
    lines = list(csv.DictReader(io.StringIO(run(project, *show, "--csv").stdout)))
    of_dvc = {"Experiment", "rev", "typ", "Created", "parent", "State", "Executor"}
    columns = set(lines[0]) - of_dvc
    assert columns == {
        *("chrf", "rouge1", "rouge2", "rougeL", "rougeLsum"),
        *("predict.generation.num_beams", "score.metrics"),
    }
    beams = {line["predict.generation.num_beams"]: line["chrf"] for line in lines}
    assert set(beams) == {"1", "2", "4"}
    assert beams["1"] != beams["4"]
    every = run(project, "dvc", "exp", "show", "--csv").stdout.splitlines()[0].split(",")
    assert len(columns) < 20 < len(every) < 100  # "about 70"
    assert "…" not in run(project, *show, "--md").stdout

    # differences
    run(project, *apply)
    assert value(project, "predict", "generation", "num_beams") == 4
    metrics, params, plots = (run(project, *command).stdout for command in diffs)
    assert re.search(r"metrics.json +chrf +[\d.]+ +[\d.]+ +-?[\d.]+", metrics)
    assert "rows" not in metrics  # the same before and after
    assert re.search(r"predict.generation.num_beams +1 +4", params)
    assert "dvc_plots/index.html" in plots
    check_plots(project)
    assert ran(run(project, "dvc", "repro").stdout) == []  # what was applied is up to date

    # the same two revisions, with intervals
    *gets, compare = commands("## More than chance")
    for command in gets:
        run(project, *command)
    assert re.search(r"^chrf( +[-+\d.]+){3} +\[.*\] ", run(project, *compare).stdout, re.MULTILINE)
    for command in gets:
        shutil.rmtree(project / command[-1])
    run(project, "git", "add", "-A")
    run(project, "git", "commit", "-qm", "Four beams")
    assert run(project, *diffs[0]).stdout.strip() == ""

    # back: predictions are restored, predict does not run
    four = (project / "data/predictions/SHA256SUMS").read_bytes()
    params_file = project / "params.yaml"
    text = params_file.read_text()
    assert "num_beams: 4" in text
    params_file.write_text(text.replace("num_beams: 4", "num_beams: 2"))
    said = run(project, "dvc", "repro").stdout
    assert ran(said) == []
    assert "Stage 'predict' is cached - skipping run, checking out outputs" in said
    assert (project / "data/predictions/SHA256SUMS").read_bytes() != four
    for command in commands("## What is up to date, and what comes back"):
        done = run(project, *command)
        assert "Data and pipelines are up to date." in done.stdout
        assert ran(done.stdout) == []
    assert not at_work(project)


def check_plots(project: Path) -> None:
    """Both revisions of memory and scores are in the page; what it loads is Vega alone."""
    text = (project / "dvc_plots/index.html").read_text()
    for name in ("rss_peak_bytes", "data_telemetry_csv", "data_plots_chrf_csv"):
        assert name in text
    for revision in ("workspace", "HEAD"):
        assert f'"rev": "{revision}"' in text
    assert OFFLINE in PAGE
    named = re.search(r"\(`(vega@[^`]+)`, `(vega-lite@[^`]+)`, `(vega-embed@[^`]+)` of npm\)", PAGE)
    assert named is not None
    assert LOADED.findall(text) == [
        f"https://cdn.jsdelivr.net/npm/{name}" for name in named.groups()
    ]

    (template,) = blocks(section(PAGE, "## Plots"), "html")
    (project / "offline.html").write_text(template)
    (diff,) = commands("## Plots")
    run(project, *diff)
    text = (project / "dvc_plots/index.html").read_text()
    assert LOADED.findall(text) == ["vega.js", "vega-lite.js", "vega-embed.js"]
    assert "rss_peak_bytes" in text
    (project / "offline.html").unlink()
    shutil.rmtree(project / "dvc_plots")
    assert LOADED.findall((project / "report.html").read_text()) == []
