"""Metrics that were not computed alike are refused, and the difference is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.compare.agreement import agree, not_additive
from pipeline.compare.compare import compare
from pipeline.compare.scored import Scored
from pipeline.errors import ConfigError, ScoresError
from tests.compare.systems import Rows, write_scores

ROWS: Rows = [("a", "the cat", ["the cat sat"])]


def _sets(folder: Path, *metrics: tuple[Any, ...]) -> list[Scored]:
    return [
        Scored(write_scores(folder / f"s{number}", ROWS, metrics=entries))
        for number, entries in enumerate(metrics)
    ]


def _alter(scored: Scored, change: Callable[[dict[str, Any]], None]) -> Scored:
    folder = Path(scored.name)
    summary = json.loads((folder / "summary.json").read_bytes())
    change(summary["metrics"])
    (folder / "summary.json").write_text(json.dumps(summary))
    return Scored(folder)


def test_another_signature(tmp_path: Path) -> None:
    sets = _sets(tmp_path, ("bleu",), ({"bleu": {"lowercase": True, "tokenize": "zh"}},))
    message = (
        r"bleu was not computed alike: case is mixed in \S+s0 and lc in \S+s1; "
        r"tok is 13a in \S+s0 and zh in \S+s1; option tokenize is .*; score both with the same"
    )
    with pytest.raises(ScoresError, match=message):
        agree(sets, [])


def test_another_version(tmp_path: Path) -> None:
    ours, theirs = _sets(tmp_path, ("bleu",), ("bleu",))

    def change(metrics: dict[str, Any]) -> None:
        signature = metrics["bleu"]["signature"]
        metrics["bleu"]["signature"] = signature.replace("version:2", "version:1")

    with pytest.raises(ScoresError, match=r"version is 2\S+ in \S+s0 and 1\S+ in \S+s1"):
        agree([ours, _alter(theirs, change)], [])


def test_an_option_that_the_signature_does_not_show(tmp_path: Path) -> None:
    sets = _sets(tmp_path, ("rouge",), ({"rouge": {"types": ["rouge1"]}},))
    with pytest.raises(ScoresError, match=r"rouge was not .*: option types is \['rouge1', 'rouge"):
        agree(sets, ["rouge1"])


def test_other_metrics(tmp_path: Path) -> None:
    sets = _sets(tmp_path, ("rouge", "bleu"), ("bleu",), ("rouge",))
    message = (
        r"s0 has the metrics rouge, bleu, \S+s1 has bleu; score both with the same metrics, or "
        r"compare by what both have: --metric bleu$"
    )
    with pytest.raises(ScoresError, match=message):
        agree(sets[:2], [])
    (bleu,) = agree(sets[:2], ["bleu"])
    assert (bleu.named.label, bleu.scores) == ("bleu", ("bleu",))
    with pytest.raises(ScoresError, match=r"has rouge; score both with the same metrics$"):
        agree(sets[1:], [])
    with pytest.raises(ScoresError, match=r"s2 has no scores of bleu; score it with that metric"):
        agree(sets[1:], ["bleu"])


def test_what_is_no_sum_is_named_and_not_compared(tmp_path: Path) -> None:
    ours, theirs = _sets(tmp_path, ("bleu",), ("bleu",))
    entry = {"signature": "x", "scale": 1.0, "scores": {"other": {"value": 1.0}}}
    sets = [ours, _alter(theirs, lambda metrics: metrics.update({"other": entry}))]
    assert [each.named.label for each in agree(sets, [])] == ["bleu"]
    assert not_additive(sets) == ["other"]
    assert compare(Path(ours.name), [Path(theirs.name)], replicates=2).not_compared == ["other"]
    with pytest.raises(ConfigError, match="there is no 'other'"):
        agree(sets[::-1], ["other"])


def test_a_metric_that_is_not_known_here(tmp_path: Path) -> None:
    def change(metrics: dict[str, Any]) -> None:
        metrics["bleu"]["metric"] = "blue"

    sets = [_alter(scored, change) for scored in _sets(tmp_path, ("bleu",), ("bleu",))]
    with pytest.raises(ScoresError, match=r"s0: the metric bleu cannot be made here: .*unknown me"):
        agree(sets, [])
