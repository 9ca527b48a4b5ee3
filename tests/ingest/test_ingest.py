"""The whole of it: where the set goes, stdin and pipes, kills, and scoring what was ingested."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sacrebleu.metrics.bleu import BLEU

from pipeline.errors import DataError, PredictionSetError
from pipeline.ingest import ingest as module
from pipeline.ingest import writer
from pipeline.ingest.ingest import ingest_lines
from pipeline.score.config import ScoreConfig
from pipeline.score.run import score
from pipeline.store.prediction_set import PredictionSet
from stages.main import main
from tests.ingest.test_lines import rows
from tests.project import ROOT

COMMAND = [sys.executable, "-m", "stages.main", "ingest"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("hyp.txt").write_text("the cat sat\na dog\n")
    Path("ref.txt").write_text("the cat sat down\nthe dog\n")
    return tmp_path


REST = ("--reference", "r", "--out", "o")
LINES = ("--hypotheses", "hyp.txt", "--reference", "ref.txt", "--out", "out")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["ingest", *arguments])


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_score_takes_it_like_any_other(folder: Path) -> None:
    result = run(*LINES)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("out: 2 rows in 1 chunks, run ")
    summary = score(Path("out"), Path("scores"), Path("metrics.json"), ScoreConfig(replicates=5))
    oracle = BLEU().corpus_score(
        Path("hyp.txt").read_text().splitlines(), [Path("ref.txt").read_text().splitlines()]
    )
    assert summary["metrics"]["bleu"]["scores"]["bleu"]["value"] == oracle.score
    assert summary["counts"]["finish_reasons"] == {"ingested": 2}


def test_the_card_says_what_was_read_and_not_where_from(folder: Path) -> None:
    card = ingest_lines("hyp.txt", ("ref.txt",), Path("a"))
    Path("elsewhere").mkdir()
    for name in ("hyp.txt", "ref.txt"):
        Path(name).rename(f"elsewhere/{name}.old")
    again = ingest_lines("elsewhere/hyp.txt.old", ("elsewhere/ref.txt.old",), Path("b"))
    assert card == again
    assert "hyp.txt" not in Path("a/run.json").read_text()
    assert Path("a/chunk-00000.parquet").read_bytes() == Path("b/chunk-00000.parquet").read_bytes()
    Path("elsewhere/hyp.txt.old").write_text("another\na dog\n")
    other = ingest_lines("elsewhere/hyp.txt.old", ("elsewhere/ref.txt.old",), Path("c"))
    assert other.fingerprint != card.fingerprint


def test_the_seal_is_checked_by_sha256sum(folder: Path) -> None:
    assert run(*LINES, "--chunk-rows", "1").exit_code == 0
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd="out", check=True)
    assert len(PredictionSet(Path("out")).present()) == 2


def test_a_set_is_replaced_only_when_asked_and_nothing_else_ever(folder: Path) -> None:
    assert run(*LINES).exit_code == 0
    Path("hyp.txt").write_text("new\nnew\n")
    refused = run(*LINES)
    assert refused.exit_code == 1
    assert "out holds a prediction set already; name another folder with --out" in refused.stderr
    assert rows(Path("out"))[0]["prediction"] == "the cat sat"
    assert run(*LINES, "--overwrite").exit_code == 0
    assert rows(Path("out"))[0]["prediction"] == "new"
    Path("mine").mkdir()
    Path("mine/notes").write_text("precious")
    for target in ("mine", "hyp.txt"):
        refused = run(*LINES[:-1], target, "--overwrite")
        assert refused.exit_code == 1
        assert "exists and is not a prediction set" in refused.stderr
    assert Path("mine/notes").read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reference", "r", "--out", "o"], "Pass either --hypotheses FILE, or FILE"),
        (["--hypotheses", "h", "--hypothesis", "f", *REST], "Pass either"),
        (["--hypotheses", "h", "--id", "i", *REST], "go with --hypothesis"),
        (["--hypothesis", "h", "--reference", "r", "--out", "o"], "wants the FILE"),
        (["--hypotheses", "h", "--out", "o"], "Missing option '--reference'"),
        (["--hypotheses", "h", "--reference", "r"], "Missing option '--out'"),
        (["--hypotheses", "h", "--chunk-rows", "0", *REST], "chunk-rows"),
    ],
)  # fmt: skip
def test_wrong_usage(folder: Path, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_stdin_once(folder: Path) -> None:
    result = run("--hypotheses", "-", "--reference", "-", "--out", "o")
    assert result.exit_code == 1
    assert "stdin (-) can be one of the files only" in result.stderr


def test_lines_from_stdin_are_lines_of_a_file(folder: Path) -> None:
    run(*LINES)
    content = Path("hyp.txt").read_bytes()
    arguments = ["--hypotheses", "-", "--reference", "ref.txt", "--out", "piped"]
    subprocess.run([*COMMAND, *arguments], input=content, check=True, env=environment())
    assert Path("piped/SHA256SUMS").read_bytes() == Path("out/SHA256SUMS").read_bytes()
    line = f"{' '.join(COMMAND)} --hypotheses <(cat hyp.txt) --reference ref.txt --out p2"
    subprocess.run(["bash", "-c", line], check=True, env=environment())
    assert Path("p2/SHA256SUMS").read_bytes() == Path("out/SHA256SUMS").read_bytes()


def test_stdin_that_is_closed(folder: Path) -> None:
    line = f"{' '.join(COMMAND)} - --hypothesis h --reference r --out piped <&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, env=environment())
    assert (done.returncode, done.stderr) == (
        1,
        b"Error: stdin is closed; pipe the text in, or name a file\n",
    )


def test_fields_from_stdin(folder: Path) -> None:
    content = b'{"h": "a", "r": ["b", "c"]}\n{"h": "a"}\n'
    arguments = ["-", "--hypothesis", "h", "--reference", "r", "--out", "piped"]
    done = subprocess.run(
        [*COMMAND, *arguments], input=content, capture_output=True, env=environment()
    )
    assert done.returncode == 1
    assert done.stderr.decode().startswith("Error: stdin row 1 has no reference")
    done = subprocess.run([*COMMAND, *arguments], input=content[:28], env=environment(), check=True)
    assert rows(Path("piped"))[0]["references"] == ["b", "c"]
    arguments = ["-", "--format", "csv", "--hypothesis", "h", "--reference", "r", "--out", "csv"]
    subprocess.run([*COMMAND, *arguments], input=b"h,r\na,b\n", env=environment(), check=True)
    assert rows(Path("csv"))[0]["references"] == ["b"]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_ingest_leaves_nothing_under_the_final_name(folder: Path, end: int) -> None:
    program = (
        "import sys, time; from pipeline.ingest import writer; from stages.main import main\n"
        "kept = writer.file_sha256\n"
        "def slow(path):\n"
        "    print('chunk', flush=True); time.sleep(60); return kept(path)\n"
        "writer.file_sha256 = slow\n"
        f"sys.argv = ['twophase', 'ingest', *{list(LINES)}]; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment(), text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    assert list(Path().glob(".out.tmp-*/new/run.json"))
    process.send_signal(end)
    assert process.wait(20) == (-9 if end == signal.SIGKILL else 143)
    process.stdout.close()
    assert not Path("out").exists()
    assert bool(list(Path().glob(".out.tmp-*"))) == (end == signal.SIGKILL)
    assert run(*LINES).exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["hyp.txt", "out", "ref.txt"]


def test_a_file_that_changes_while_it_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_set = writer.write_set

    def late(*arguments: object) -> object:
        hashes = write_set(*arguments)  # type: ignore[arg-type]
        time.sleep(0.01)
        Path("hyp.txt").write_text("the cat ran\na dog\n")
        return hashes

    monkeypatch.setattr(module, "write_set", late)
    with pytest.raises(DataError, match=r"hyp.txt changed while it was read"):
        ingest_lines("hyp.txt", ("ref.txt",), Path("out"))
    assert not Path("out").exists()


def test_a_full_disk_is_an_expected_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_set", full)
    with pytest.raises(PredictionSetError, match=r"out cannot be written: .*No space left"):
        ingest_lines("hyp.txt", ("ref.txt",), Path("out"))


def test_row_groups_end_at_chunks_and_stay_small(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("hyp.txt").write_text("".join(f"line {n}\n" for n in range(5000)))
    Path("ref.txt").write_text("x\n" * 5000)
    monkeypatch.setattr(writer, "ROW_GROUP_ROWS", 1700)
    card = ingest_lines("hyp.txt", ("ref.txt",), Path("out"), chunk_rows=3000)
    source = PredictionSet(Path("out"))
    groups = [[len(t) for t in source.reader(n).tables()] for n in range(card.chunks)]
    assert groups == [[1700, 1300], [1700, 300]]
    monkeypatch.setattr(writer, "GROUP_BYTES", 100_000)
    ingest_lines("hyp.txt", ("ref.txt",), Path("small"))
    tables = list(PredictionSet(Path("small")).reader(0).tables())
    assert max(map(len, tables)) < 3000
    assert [row["prediction"] for row in rows(Path("small"))] == [f"line {n}" for n in range(5000)]


PROGRAM = r"""
import json, re, sys
sys.argv = ["twophase", "ingest", *sys.argv[1:]]
from stages.main import main
main(standalone_mode=False)
# Not ru_maxrss, which counts what the parent held when it started this process.
peak = int(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1]) * 1024
print(json.dumps([peak, sorted(sys.modules)]))
"""


def test_memory_does_not_grow_with_the_file_and_nothing_heavy_is_imported(folder: Path) -> None:
    peaks = []
    for count in (20_000, 150_000):
        Path("hyp.txt").write_text("".join(f"line {n} {'x' * 300}\n" for n in range(count)))
        Path("ref.txt").write_text(f"{'y' * 300}\n" * count)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *LINES, "--overwrite"],
            capture_output=True, check=True, text=True, env=environment(),
        )  # fmt: skip
        peak, modules = json.loads(done.stdout.splitlines()[-1])
        peaks.append(peak)
        assert not {"torch", "transformers", "datasets", "evaluate"} & set(modules)
    assert peaks[1] - peaks[0] < 50e6  # of 80 MB that were added
