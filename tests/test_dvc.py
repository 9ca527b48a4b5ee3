"""The pipeline under DVC: what runs again and what does not, and kills of `dvc repro` itself."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipeline.fetch.config import FetchConfig
from pipeline.predict.config import PredictConfig
from pipeline.predict.fingerprint import NEUTRAL_KEYS
from pipeline.prepare.config import PrepareConfig
from pipeline.score.config import ScoreConfig
from tests.project import ROOT, copy_project, run, start

CONFIGS = {
    "fetch": FetchConfig,
    "prepare": PrepareConfig,
    "predict": PredictConfig,
    "score": ScoreConfig,
}
# Settings that change no byte of what the stage writes.
NEUTRAL = {"predict": NEUTRAL_KEYS, "score": {"n_jobs", "backend", "scheduler"}}


def params_file() -> dict[str, dict[str, object]]:
    loaded: dict[str, dict[str, object]] = YAML(typ="safe").load(ROOT / "params.yaml")
    return loaded


def test_params_yaml_holds_every_key() -> None:
    params = params_file()
    assert set(params) == set(CONFIGS)
    for section, config in CONFIGS.items():
        assert list(params[section]) == list(config.__struct_fields__), section


def test_every_key_has_its_comment() -> None:
    for line in (ROOT / "params.yaml").read_text().splitlines():
        if ":" in line.partition("#")[0] and line.startswith("  "):
            assert len(line.partition(" # ")[2]) > 10, line


def test_each_stage_lists_exactly_the_params_that_can_change_its_output() -> None:
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]
    for section, config in CONFIGS.items():
        keys = [key for key in config.__struct_fields__ if key not in NEUTRAL.get(section, ())]
        listed = [f"{section}.{key}" for key in keys]
        # fetch links the adapter, so that DVC sees it change
        assert stages[section]["params"] == listed + ["predict.adapter"] * (section == "fetch")


def ran(output: str) -> list[str]:
    return [line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")]


@pytest.fixture
def project(tmp_path: Path, gpt2: Path) -> Path:
    return copy_project(tmp_path / "project", gpt2)


def chunks(project: Path) -> dict[str, int]:
    """Chunk -> time of its making, in the stores."""
    paths = project.glob("data/.partial/*/chunk-*.parquet")
    return {str(path.relative_to(project)): path.stat().st_mtime_ns for path in paths}


@pytest.mark.slow
def test_what_runs_again(project: Path) -> None:
    assert ran(run(project, "dvc", "repro").stdout) == [
        *("fetch", "prepare", "predict", "score", "report")
    ]
    again = run(project, "dvc", "repro").stdout
    assert ran(again) == []
    assert "Data and pipelines are up to date." in again
    assert run(project, "dvc", "status").stdout.strip() == "Data and pipelines are up to date."
    run(project, "git", "add", "-A")
    run(project, "git", "commit", "-qm", "scored")
    predictions = {p.name: p.read_bytes() for p in (project / "data/predictions").glob("*.*")}

    params = (project / "params.yaml").read_text()

    def with_params(old: str, new: str) -> list[str]:
        assert old in params
        (project / "params.yaml").write_text(params.replace(old, new))
        return ran(run(project, "dvc", "repro").stdout)

    # a score parameter: score and report, and no prediction
    assert with_params("replicates: 50", "replicates: 60") == ["score", "report"]
    # neutral ones: nothing
    (project / "params.yaml").write_text(params)
    run(project, "dvc", "repro")
    assert with_params("n_jobs: 1", "n_jobs: 2") == []
    assert with_params("device: cpu", "device: auto") == []
    # a predict parameter: predict and what follows
    assert with_params("max_new_tokens: 8", "max_new_tokens: 5") == ["predict", "score", "report"]
    # the random model scores 0 before and after: --all shows what did not change, too
    assert "bleu" in run(project, "dvc", "metrics", "diff", "--all").stdout
    # and back: the predictions are restored without a run
    made = chunks(project)
    (project / "params.yaml").write_text(params)
    back = run(project, "dvc", "repro").stdout
    assert "Stage 'predict' is cached - skipping run, checking out outputs" in back
    assert chunks(project) == made
    assert {p.name: p.read_bytes() for p in (project / "data/predictions").glob("*.*")} == (
        predictions
    )

    # the person's own data and model, changed under the same name, are noticed
    with (project / "rows.jsonl").open("a") as rows:
        rows.write('{"id": "new", "text": "a new row", "summary": "new"}\n')
    assert ran(run(project, "dvc", "repro").stdout) == ["prepare", "predict", "score", "report"]

    assert "rouge1" in run(project, "dvc", "metrics", "show").stdout
    run(project, "dvc", "plots", "show")
    page = (project / "dvc_plots/index.html").read_text()
    assert "rss_peak_bytes" in page


def wait_for(condition: object, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.slow
def test_dvc_killed_in_the_middle_predicts_nothing_twice(project: Path) -> None:
    process = start(project, ["dvc", "repro"])
    wait_for(lambda: len(chunks(project)) >= 2)
    os.killpg(process.pid, signal.SIGKILL)  # DVC and its stage
    process.wait()
    kept = chunks(project)
    assert 2 <= len(kept) < 6
    done = run(project, "dvc", "repro").stdout
    assert f"({6 - len(kept)} made, {len(kept)} kept)" in done
    assert all(chunks(project)[name] == made for name, made in kept.items())
    assert "Data and pipelines are up to date." in run(project, "dvc", "repro").stdout


@pytest.mark.slow
def test_dvc_killed_between_publish_and_its_commit_predicts_nothing_twice(project: Path) -> None:
    process = start(project, ["dvc", "repro"])
    published = project / "data/predictions/SHA256SUMS"
    wait_for(published.exists)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    lock = project / "dvc.lock"
    assert not lock.exists() or "  predict:" not in lock.read_text()  # not committed
    kept = chunks(project)
    assert len(kept) == 6
    done = run(project, "dvc", "repro").stdout
    assert "(0 made, 6 kept)" in done
    assert chunks(project) == kept


@pytest.mark.slow
def test_dvc_killed_alone_leaves_a_predict_that_is_not_disturbed(project: Path) -> None:
    text = (project / "params.yaml").read_text()
    (project / "params.yaml").write_text(text.replace("chunk_rows: 4", "chunk_rows: 1"))
    process = start(project, ["dvc", "repro"])
    wait_for(lambda: len(chunks(project)) >= 1)
    os.kill(process.pid, signal.SIGKILL)  # its stage goes on
    process.wait()
    refused = run(project, "dvc", "repro", check=False)
    if refused.returncode != 0:  # the stage was still at work
        assert "is being written by process" in refused.stderr
    wait_for(lambda: len(chunks(project)) == 24)
    wait_for((project / "data/predictions/SHA256SUMS").exists)
    kept = chunks(project)
    run(project, "dvc", "repro")
    assert chunks(project) == kept


@pytest.mark.slow
def test_a_second_machine_pulls_and_scores(project: Path, tmp_path: Path) -> None:
    run(project, "dvc", "remote", "add", "-d", "store", str(tmp_path / "remote"))
    run(project, "dvc", "repro")
    run(project, "git", "add", "-A")
    run(project, "git", "commit", "-qm", "predicted")
    run(project, "dvc", "push")
    run(tmp_path, "git", "clone", "-q", str(project), "other")
    other = tmp_path / "other"

    def score() -> list[str]:
        """The commands of `make score`."""
        run(other, "dvc", "pull", "--allow-missing", "data/scores", "data/plots")
        return ran(run(other, "dvc", "repro", "--pull", "--allow-missing", "score").stdout)

    def same_bits() -> bool:
        names = ("metrics.json", "data/scores/summary.json")
        return all((other / name).read_bytes() == (project / name).read_bytes() for name in names)

    assert score() == []  # the first machine has scored already
    assert same_bits()
    params = (other / "params.yaml").read_text()
    (other / "params.yaml").write_text(
        params.replace("[rouge, bleu]", "[{rouge: {stemmer: true}}]")
    )
    assert score() == ["score"]
    assert "stem:yes" in (other / "data/scores/summary.json").read_text()
    assert not (other / "data/model").exists()
    assert not (other / "data/examples.parquet").exists()
    # back by hand, and back by git
    (other / "params.yaml").write_text(params)
    score()
    assert same_bits()
    (other / "params.yaml").write_text(params.replace("[rouge, bleu]", "[bleu]"))
    assert score() == ["score"]
    run(other, "git", "checkout", "-q", ".")
    score()
    assert same_bits()
