"""Commands on ``s3://``: predict killed and resumed, score from there, and what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.store.place import open_place
from pipeline.store.prediction_set import SUMS, PredictionSet
from stages.main import SUBCOMMANDS
from tests.predict.place import make_place
from tests.project import ROOT
from tests.score.sets import write_set
from tests.stages.test_predict import files_of


@pytest.fixture
def place(tmp_path: Path, gpt2: Path) -> Path:
    return make_place(tmp_path, gpt2, rows=24)


def start(place: Path, *command: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"stages.{command[0]}", *command[1:]], cwd=place, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


def run(place: Path, *command: str, code: int = 0, **environment: str) -> str:
    """Run a stage; what it said (stderr where it failed, which must be one line)."""
    process = start(place, *command, **environment)
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == code, stderr
    if code == 1:
        assert len(stderr.splitlines()) == 1, stderr
        return stderr
    return stdout


def machine(place: Path, name: str) -> Path:
    """The folder of another machine: the same settings, model and data, and nothing else."""
    folder = place / name
    folder.mkdir()
    for name in ("params.yaml", "examples.parquet", "model"):
        (folder / name).symlink_to(place / name)
    return folder


def predict(predictions: str) -> list[str]:
    return [
        *("predict", "--model", "model", "--examples", "examples.parquet"),
        *("--predictions", predictions, "--telemetry", "telemetry.csv"),
    ]


def chunks_at(url: str) -> dict[str, int]:
    return {name: size for name, size in open_place(url).sizes().items() if "chunk-" in name}


@pytest.mark.slow
def test_predict_is_killed_and_resumed_here_and_elsewhere_and_scored_from_there(
    s3: str, place: Path
) -> None:
    url = f"{s3}/run/"
    process = start(place, *predict(url))
    deadline = time.monotonic() + 300
    while len(chunks_at(url)) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = len(list(place.glob("data/.partial/*/chunk-*.parquet")))
    assert 2 <= kept < 6
    there = open_place(url)
    assert SUMS not in there.sizes()
    versions = {name: etag(url, name) for name in chunks_at(url)}

    said = run(place, *predict(url))
    assert f"24 rows in 6 chunks ({6 - kept} made, {kept} kept)" in said
    # What was there was not put again, let alone made again.
    assert {name: etag(url, name) for name in versions} == versions
    run(place, *predict("here/predictions"))
    here = files_of(place / "here/predictions")
    assert {name: there.read(name) for name in there.sizes()} == here

    elsewhere = machine(place, "elsewhere")
    assert "(0 made, 6 kept)" in run(elsewhere, *predict(url))  # no model is loaded for it
    assert {name: etag(url, name) for name in versions} == versions

    for out, predictions in (("url", url), ("folder", "here/predictions")):
        run(
            place, "score", "--predictions", predictions, "--scores", f"{out}/scores",
            "--metrics", f"{out}/metrics.json", "--plots", f"{out}/plots",
            "--cache", f"{out}/cache", "-S", "score.replicates=50",
        )  # fmt: skip
    for part in ("scores", "plots", "metrics.json"):
        ours, theirs = place / "url" / part, place / "folder" / part
        if ours.is_dir():
            assert files_of(ours) == files_of(theirs)
        else:
            assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.slow
def test_ranks_of_two_machines_share_nothing_but_the_url(s3: str, place: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = [
        start(
            machine(place, f"node{rank}"), *predict(f"{s3}/run"), RANK=str(rank), LOCAL_RANK="0",
            WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
        )
        for rank in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=500) for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], said
    assert "24 rows in 6 chunks (6 made, 0 kept)" in said[0][0]
    made = [
        {path.name for path in place.glob(f"node{rank}/data/.partial/*/chunk-*")}
        for rank in range(2)
    ]
    assert len(made[0]) == 6  # rank 0 took over what the other made
    assert made[1] < made[0]
    run(place, *predict("here/predictions"))
    there = open_place(f"{s3}/run")
    here = files_of(place / "here/predictions")
    assert {name: there.read(name) for name in there.sizes()} == here


def etag(url: str, name: str) -> tuple[str, str]:
    import s3fs

    info = s3fs.S3FileSystem().info(open_place(url).at(name).removeprefix("s3://"), refresh=True)
    return str(info["ETag"]), str(info["LastModified"])


def test_what_is_remembered_is_not_fetched_again(s3: str, tmp_path: Path) -> None:
    from pipeline.score.config import ScoreConfig
    from pipeline.score.run import score
    from pipeline.store.upload import UrlTarget
    from pipeline.store.url import Url

    write_set(tmp_path / "set")
    target = UrlTarget(Url.parse(f"{s3}/run"))
    target.upload(tmp_path / "set")
    fetched: list[str] = []
    get = Url._get

    def counted(self: Url, name: str, path: str) -> None:
        fetched.append(name)
        get(self, name, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Url, "_get", counted)

        def run_score(where: str | Path, out: str, **config: object) -> bytes:
            settings = ScoreConfig(**{"replicates": 20, **config})
            score(
                where, tmp_path / out, tmp_path / f"{out}.json", settings, cache=tmp_path / "cache"
            )
            return (tmp_path / out / "summary.json").read_bytes()

        first = run_score(f"{s3}/run", "a")
        assert sorted(fetched) == [f"chunk-0000{chunk}.parquet" for chunk in range(3)]
        assert run_score(f"{s3}/run", "b") == first
        run_score(f"{s3}/run", "c", metrics=("chrf",))  # another metric needs the texts
        assert len(fetched) == 3
    assert run_score(tmp_path / "set", "d") == first
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Url, "_get", counted)
        score(f"{s3}/run", tmp_path / "e", tmp_path / "e.json", ScoreConfig(replicates=20))
        assert len(fetched) == 9  # without a cache: for the scores, and for the hash
    assert (tmp_path / "e/summary.json").read_bytes() == first


def test_ingest_inspect_verify_merge_and_report_take_urls(s3: str, tmp_path: Path) -> None:
    (tmp_path / "hyp.txt").write_text("a cat\na dog\n")
    lines = ("ingest", "--hypotheses", "hyp.txt", "--reference", "hyp.txt", "--out")
    run(tmp_path, *lines, f"{s3}/in")
    run(tmp_path, *lines, "here")
    place = open_place(f"{s3}/in")
    assert {name: place.read(name) for name in place.sizes()} == files_of(tmp_path / "here")
    assert "holds a prediction set already" in run(tmp_path, *lines, f"{s3}/in", code=1)
    run(tmp_path, *lines, f"{s3}/in", "--overwrite")
    assert "2 rows in 1 chunks, no fault" in run(tmp_path, "verify", f"{s3}/in")
    shown = json.loads(run(tmp_path, "inspect", f"{s3}/in", "--json"))
    assert shown["folder"] == f"{s3}/in"
    assert shown == {**json.loads(run(tmp_path, "inspect", "here", "--json")), "folder": f"{s3}/in"}
    run(tmp_path, "merge", f"{s3}/in", "--out", f"{s3}/merged")
    assert PredictionSet(f"{s3}/merged").sealed
    run(tmp_path, "score", "--predictions", f"{s3}/merged")
    run(tmp_path, "report", "--predictions", f"{s3}/merged")
    assert PredictionSet(f"{s3}/merged").card.fingerprint in (tmp_path / "report.html").read_text()


def test_errors_are_one_line(s3: str, tmp_path: Path) -> None:
    score = ("score", "--predictions")
    assert "is not a prediction set: it has no run.json" in run(
        tmp_path, *score, f"{s3}/nothing", code=1
    )
    assert "there is no such bucket" in run(tmp_path, *score, "s3://no-bucket/run", code=1)
    dead = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"}
    said = run(tmp_path, *score, f"{s3}/run", code=1, **dead)
    assert "cannot be read: EndpointConnectionError" in said
    nobody = {
        "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
        "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_CONFIG_FILE": "/nowhere",
    }  # fmt: skip
    assert "NoCredentialsError" in run(tmp_path, *score, f"{s3}/run", code=1, **nobody)
    assert not (tmp_path / "data/scores").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("score", "--scores", "s3://b/r"),
        ("score", "--metrics", "s3://b/r"),
        ("predict", "--examples", "s3://b/r"),
        ("compare", "s3://b/r", "here"),
        ("report", "--report", "s3://b/r"),
    ],
)
def test_what_takes_no_url_says_which_do(command: tuple[str, ...]) -> None:
    from click.testing import CliRunner

    from stages.main import main

    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert "s3://b/r is a URL, and this is a path on this machine; URLs are for" in result.stderr
    assert command[0] in SUBCOMMANDS
