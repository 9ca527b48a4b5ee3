"""Errors as exit codes and lines; sections with and without a file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pipeline.config import default_section
from pipeline.errors import ConfigError, DataError
from pipeline.score.config import ScoreConfig
from stages.main import SUBCOMMANDS, main
from stages.options import expected_errors, message_line


def command(error: BaseException) -> click.Command:
    @click.command()
    @expected_errors
    def failing() -> None:
        raise error

    return failing


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EBUSY, errno.EISDIR])
def test_what_a_person_can_cause_is_one_line(number: int) -> None:
    error = OSError(number, os.strerror(number), "some/path")
    result = CliRunner().invoke(command(error), [])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: some/path: {os.strerror(number)}; ")
    assert len(result.stderr.splitlines()) == 1


def test_a_bug_keeps_its_traceback() -> None:
    assert isinstance(CliRunner().invoke(command(KeyError("x")), []).exception, KeyError)
    broken = OSError(errno.EBADF, "Bad file descriptor")
    assert CliRunner().invoke(command(broken), []).exception is broken


def test_a_name_with_a_line_break_stays_on_one_line() -> None:
    result = CliRunner().invoke(command(DataError("no column 'a\nb\u2028c'")), [])
    assert result.stderr == "Error: no column 'a\\nb\\u2028c'\n"
    assert len(message_line("x" * 10_000)) < 2000


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("backend=ray", "score.backend: expected dask, loky, threading, got 'ray'"),
        ("normalize=[nfc]", "score.normalize[0]: expected lowercase, nfkc, strip, got 'nfc'"),
        ("metrics=[{1: {}}]", "score.metrics[0]: expected str, got int"),
        ("replicates=1000000000", "score.replicates: expected int <= 100000, got 1000000000"),
    ],
)
def test_a_value_that_is_none_of_the_choices_is_told_them(value: str, message: str) -> None:
    overrides = [f"score.{value}"]
    with pytest.raises(ConfigError) as error:
        default_section("score", ScoreConfig, overrides)
    assert str(error.value).endswith(message)


def test_every_subcommand_has_help() -> None:
    for name in SUBCOMMANDS:
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0, name
        assert "Usage:" in result.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("score: {njobs: 1}", "unknown key 'score.njobs' (did you mean n_jobs?)"),
        ("predict: {max_new_tokens: 5}", "unknown key 'predict.max_new_tokens'"),
        ("scroe: {}", "unknown section 'scroe' (did you mean score?)"),
        ("1: {}", "unknown section 1"),
        ("score: {1: 2}", "unknown key 'score.1'"),
        ("score: {seed: 2024-13-45}", "a value cannot be read"),
        ("score: {confidence: 95}", "score.confidence: expected float < 1.0, got 95"),
        ("score: {metrics: [1]}", "score.metrics[0]: expected str or mapping, got int"),
        ("score: {metrics: [blue]}", "unknown metric 'blue' (did you mean bleu?)"),
        ("score: {metrics: [{bleu: {tokenise: zh}}]}", "(did you mean tokenize?)"),
        ("score: [1]", "score must be a mapping of keys, got [1]"),
        ("a: [", "is not valid YAML"),
        ("a: 1\na: 2", "is not valid YAML: found duplicate key"),
    ],
)
def test_check_finds_what_no_stage_would_read(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    result = CliRunner().invoke(main, ["check", "--params", str(path)])
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_check_accepts_ours() -> None:
    params = Path(__file__).parents[2] / "params.yaml"
    assert CliRunner().invoke(main, ["check", "--params", str(params)]).exit_code == 0


def test_a_mistake_in_an_override_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("score: {}")
    result = CliRunner().invoke(main, ["score", "--params", str(path), "-S", "score.metrics=bleu"])
    assert "-S score.metrics=bleu: score.metrics: expected list, got str" in result.stderr


def test_score_needs_no_params_file_unless_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "nowhere is not a prediction set" in (
        CliRunner().invoke(main, ["score", "--predictions", "nowhere"]).stderr
    )
    named = CliRunner().invoke(main, ["score", "--params", "params.yaml"])
    assert "no such params file" in named.stderr
