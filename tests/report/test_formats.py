"""What score prints."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.report.formats import Format, format_scores, read_previous
from stages.report import command
from tests.report.test_report import COUNTS, summary

ROUGE = {"value": 0.13746, "low": 0.1129, "high": 0.1616}
GROUPS = [
    {"values": {"topic": "a|b", "n": 1}, "rows": 90, "scores": {"rouge1": ROUGE, "bleu": None}},
    {"values": {"topic": None, "n": None}, "rows": 6, "scores": {"rouge1": None, "bleu": None}},
]
GROUPED = summary(by=["topic", "n"], groups=GROUPS)
PREVIOUS = {"rouge1": 0.15, "bleu": 3.0, "rows": 90, "complete": 1}


def test_a_table_with_changes_and_groups() -> None:
    assert format_scores(GROUPED, PREVIOUS, "table").splitlines() == [
        "                             value  95% interval       change",
        "rouge1                      0.1375  [0.1129, 0.1616]  -0.0125",
        "bleu                     undefined",
        "rows                            96                         +6",
        "cut at the length limit      25.0%",
        "",
        "topic  n     rows  rouge1                   bleu",
        "a|b    1       90  0.1375 [0.1129, 0.1616]  undefined",
        "null   null     6  undefined                undefined",
    ]


def test_no_scores_before_no_column() -> None:
    heading = format_scores(summary(), None, "table").splitlines()[0]
    assert heading.split() == ["value", "95%", "interval"]
    same = format_scores(summary(), {"rouge1": 0.13746}, "table").splitlines()
    assert same[1].split()[-1] == "="
    assert same[2].split() == ["bleu", "undefined"]


def test_markdown() -> None:
    lines = format_scores(GROUPED, PREVIOUS, "markdown").splitlines()
    assert lines[:3] == [
        "|  | value | 95% interval | change |",
        "|---|---|---|---|",
        "| rouge1 | 0.1375 | [0.1129, 0.1616] | -0.0125 |",
    ]
    assert lines[-5] == "| a\\|b | 1 | 90 | 0.1375 [0.1129, 0.1616] | undefined |"
    assert lines[-3:] == ["", "- rouge: `nrefs:1|tok:<default>`", "- bleu: `nrefs:1`"]
    plain = format_scores(summary(confidence=0), None, "markdown").splitlines()
    assert plain[0] == "|  | value |"


@pytest.mark.parametrize(
    ("level", "shown"), [(0.975, "97.5%"), (0.9, "90%"), (0.9999999, "99.99999%"), (0.07, "7%")]
)
@pytest.mark.parametrize("form", ["table", "markdown"])
def test_the_level_is_not_rounded(level: float, shown: str, form: Format) -> None:
    heading = format_scores(summary(confidence=level), None, form).splitlines()[0]
    assert f" {shown} interval" in heading


def test_json_has_all_digits() -> None:
    content = json.loads(format_scores(GROUPED, PREVIOUS, "json"))
    assert content["scores"]["rouge1"] == {
        **ROUGE,
        "previous": 0.15,
        "change": ROUGE["value"] - 0.15,
    }
    assert content["scores"]["bleu"] == dict.fromkeys(["value", "low", "high", "change"]) | {
        "previous": 3.0
    }
    assert content["groups"] == GROUPS
    assert (content["rows"], content["complete"]) == (96, True)


def test_csv_has_all_digits() -> None:
    lines = list(csv.DictReader(io.StringIO(format_scores(GROUPED, PREVIOUS, "csv"))))
    assert lines[0]["value"] == "0.13746"
    assert float(lines[0]["change"]) == ROUGE["value"] - 0.15
    assert lines[1] == {
        **dict.fromkeys(["group", "value", "low", "high", "change"], ""),
        "rows": "96", "score": "bleu", "previous": "3.0",
    }  # fmt: skip
    assert json.loads(lines[2]["group"]) == {"topic": "a|b", "n": 1}
    assert len(lines) == 6


@pytest.mark.parametrize("content", [None, b"{", b"[1]", b"\xff"])
def test_no_earlier_scores(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "metrics.json").write_bytes(content)
    assert read_previous(tmp_path / "metrics.json") is None


def test_the_report_shows_groups(tmp_path: Path) -> None:
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores/summary.json").write_text(json.dumps(GROUPED))
    options = ["--scores", f"{tmp_path}/scores", "--telemetry", f"{tmp_path}/none"]
    options += ["--predictions", f"{tmp_path}/none", "--report", f"{tmp_path}/report.html"]
    shown = CliRunner().invoke(command, [*options, "--show"])
    assert shown.output.splitlines()[-2].split()[:3] == ["a|b", "1", "90"]
    assert CliRunner().invoke(command, options).exit_code == 0
    assert "<td>a|b</td><td>1</td><td>90</td>" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("reason", ["ingested", "forced", "end"])
def test_what_was_not_generated_here_has_no_length_limit(reason: str) -> None:
    counts = COUNTS | {"finish_reasons": {reason: 96}}
    assert "cut at" not in format_scores(summary(counts=counts), None, "table")
