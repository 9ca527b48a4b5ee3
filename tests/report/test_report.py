"""The table, the page and its picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.errors import ScoresError
from pipeline.report.page import write_page
from pipeline.report.pictures import memory_per_chunk
from pipeline.report.results import Results, read_results
from pipeline.report.table import format_lines, run_lines, score_lines
from pipeline.store.card import RunCard
from stages.report import command

COUNTS = {
    "truncated": 0,
    "empty_predictions": 0,
    "empty_references": 0,
    "out_of_vocabulary_ids": 0,
}


def summary(**changes: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "content": "c0ffee",
        "rows": 96,
        "expected_rows": 96,
        "complete": True,
        "counts": COUNTS | {"finish_reasons": {"eos": 72, "length": 24}},
        "confidence": 0.95,
        "replicates": 1000,
        "seed": 0,
        "metrics": {
            "rouge": {
                "signature": "nrefs:1|tok:<default>",
                "scale": 1.0,
                "scores": {"rouge1": {"value": 0.13746, "low": 0.1129, "high": 0.1616}},
            },
            "bleu": {"signature": "nrefs:1", "scale": 100.0, "scores": {"bleu": None}},
        },
        "by": [],
        "groups": [],
        **changes,
    }


TELEMETRY = (
    "chunk,elapsed_s,rss_before_bytes,rss_after_bytes,rss_peak_bytes,allocated_before_bytes,"
    "allocated_after_bytes,allocated_peak_bytes\n"
    "0,1.5,1073741824,1073741824,2147483648,,,\n"
    "1,2.0,1073741824,1073741824,3221225472,,,\n"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores/summary.json").write_text(json.dumps(summary()))
    (tmp_path / "telemetry.csv").write_text(TELEMETRY)
    return tmp_path


def results(place: Path) -> Results:
    return read_results(place / "scores", place / "telemetry.csv")


def test_the_table(place: Path) -> None:
    found = results(place)
    lines = score_lines(found.summary) + run_lines(found)
    assert format_lines(lines, 0.95).splitlines() == [
        "                             value  95% interval",
        "rouge1                      0.1375  [0.1129, 0.1616]",
        "bleu                     undefined",
        "rows                            96",
        "cut at the length limit      25.0%",
        "predict seconds                3.5",
        "peak memory (process)     3.00 GiB",
    ]


def test_what_explains_a_score_of_zero_is_shown() -> None:
    counts = COUNTS | {"empty_predictions": 96, "out_of_vocabulary_ids": 5, "finish_reasons": {}}
    lines = score_lines(summary(counts=counts))
    assert ("empty predictions", "100.0%", "") in lines
    assert ("token ids beyond the vocabulary", "5", "") in lines
    assert not any(line.name == "prompts cut to fit" for line in lines)


def test_a_partial_result_says_so(place: Path) -> None:
    lines = score_lines(summary(rows=32, complete=False))
    assert ("rows", "32 of 96", "") in lines


def test_a_set_without_rows_has_no_shares() -> None:
    counts = COUNTS | {"finish_reasons": {}}
    lines = score_lines(summary(rows=0, expected_rows=0, counts=counts))
    assert lines[-1].name == "rows"


def test_without_intervals_there_is_no_heading_for_them() -> None:
    entry = {"value": 12.345, "low": None, "high": None}
    bleu = {"signature": "", "scale": 100.0, "scores": {"bleu": entry}}
    text = format_lines(score_lines(summary(confidence=0, metrics={"bleu": bleu})), 0)
    assert "12.35" in text or "12.34" in text
    assert "interval" not in text


def test_the_gpu_counts_before_the_process(place: Path) -> None:
    text = TELEMETRY.replace(",,,\n", ",1073741824,1073741824,5368709120\n")
    (place / "telemetry.csv").write_text(text)
    assert run_lines(results(place))[-1] == ("peak memory (GPU)", "5.00 GiB", "")


def test_without_telemetry_scores_are_still_reported(place: Path) -> None:
    (place / "telemetry.csv").unlink()
    found = results(place)
    assert run_lines(found) == []
    assert memory_per_chunk(found) is None


def test_chunks_that_came_without_telemetry_leave_a_gap(place: Path) -> None:
    (place / "telemetry.csv").write_text(TELEMETRY + "2,,,,,,,\n")
    found = results(place)
    assert found.predict_seconds is None  # a part of the time would pass for the whole
    assert found.peak_bytes == 3 * 2**30
    assert memory_per_chunk(found)


def test_the_page_holds_all_and_links_to_nothing(place: Path) -> None:
    card = RunCard.plan(
        inputs={"predict": {"template": "<b>{document}</b>"}}, rows=96, chunk_rows=32, versions={}
    )
    write_page(place / "a.html", results(place), card)
    write_page(place / "b.html", results(place), card)
    text = (place / "a.html").read_text()
    assert text == (place / "b.html").read_text()
    assert "0.1375" in text
    assert "[0.1129, 0.1616]" in text
    assert "tok:&lt;default&gt;" in text
    assert "&lt;b&gt;{document}&lt;/b&gt;" in text
    assert "<svg" in text
    assert 'href="http' not in text
    assert 'src="' not in text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("scores/summary.json", "{", r"cannot be read .*run `twophase score` again"),
        ("scores/summary.json", "{}", "was not written by this version of score"),
        ("telemetry.csv", "chunk\nzero\n", r"telemetry.csv cannot be read"),
    ],
)
def test_files_that_cannot_be_used(place: Path, name: str, content: str, message: str) -> None:
    (place / name).write_text(content)
    with pytest.raises(ScoresError, match=message):
        results(place)


def test_the_command(place: Path) -> None:
    options = ["--scores", f"{place}/scores", "--telemetry", f"{place}/telemetry.csv"]
    options += ["--predictions", f"{place}/none", "--report", f"{place}/report.html"]
    shown = CliRunner().invoke(command, [*options, "--show"])
    assert shown.exit_code == 0
    assert "rouge1" in shown.output
    assert not (place / "report.html").exists()
    assert CliRunner().invoke(command, options).exit_code == 0
    assert (place / "report.html").exists()
    (place / "scores/summary.json").unlink()
    failed = CliRunner().invoke(command, options)
    assert failed.exit_code == 1
    assert "no such file; run `twophase score`" in failed.output


def test_scores_elsewhere_are_not_shown_with_the_telemetry_of_this_folder(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/telemetry.csv").write_text(TELEMETRY)
    (tmp_path / "data/scores").symlink_to(place / "scores")
    monkeypatch.chdir(tmp_path)
    here, elsewhere, named = (
        CliRunner().invoke(command, ["--show", *options]).output
        for options in (
            [],
            ["--scores", str(place / "scores")],
            ["--scores", str(place / "scores"), "--telemetry", str(place / "telemetry.csv")],
        )
    )
    assert "predict seconds" in here
    assert "predict seconds" not in elsewhere
    assert "predict seconds" in named
