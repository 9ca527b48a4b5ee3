from __future__ import annotations

from typing import Any

import pytest

from pipeline.config import parse_section
from pipeline.errors import ConfigError
from pipeline.score.config import ScoreConfig
from pipeline.score.metrics import METRICS, parse_metrics


def _names(entries: list[Any]) -> list[str]:
    return [named.label for named in parse_metrics(entries)]


def test_names_and_maps() -> None:
    plain, mapped = parse_metrics(["rouge", {"bleu": {"tokenize": "char"}}])
    assert (plain.label, mapped.label) == ("rouge", "bleu")
    assert plain.headline == ("rouge1", "rouge2", "rougeL", "rougeLsum")
    assert mapped.columns[0].name == "bleu.sys_len"
    assert _names([{"rouge": None}]) == ["rouge"]


def test_two_of_a_name_are_told_apart_by_what_differs() -> None:
    plain, stemmed = parse_metrics(["rouge", {"rouge": {"stemmer": True}}])
    assert (plain.label, stemmed.label) == ("rouge", "rouge[stemmer=true]")
    assert stemmed.headline[0] == "rouge1[stemmer=true]"
    assert stemmed.columns[1].name == "rouge1[stemmer=true].precision"


def test_an_option_that_both_have_is_not_in_the_name() -> None:
    chosen = {"lowercase": True, "tokenize": "char"}
    assert _names([{"bleu": {"lowercase": True}}, {"bleu": chosen}]) == [
        "bleu",
        "bleu[tokenize=char]",
    ]


def test_lists_and_numbers_in_names() -> None:
    assert _names(
        [
            {"rouge": {"types": ["rouge1", "rougeL"]}},
            "rouge",
            {"bleu": {"smooth_method": "floor", "smooth_value": 0.2}},
            {"bleu": {"smooth_method": "floor"}},
        ]
    ) == ["rouge[types=rouge1+rougeL]", "rouge", "bleu[smooth_value=0.2]", "bleu"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], r"score.metrics is empty: name a metric \(known: rouge, bleu, chrf"),
        (["rogue"], r"unknown metric 'rogue' \(did you mean rouge\?\)"),
        (["zzz"], r"unknown metric 'zzz' \(known: bleu, cer, chrf, custom, "),
        ([{"rouge": {"stemer": True}}], r"'score.metrics.rouge.stemer' \(did you mean stemmer\?\)"),
        ([{"bleu": {"lowercase": "yes"}}], r"score.metrics.bleu.lowercase: expected bool, got str"),
        (
            [{"bleu": {"tokenize": "14a"}}],
            r"bleu.tokenize: expected 13a, .*, zh, got '14a'",
        ),
        ([{"bleu": {"max_ngram_order": 0}}], r"score.metrics.bleu.max_ngram_order: expected int"),
        ([{"rouge": {"types": []}}], r"score.metrics.rouge.types: expected list of length >= 1"),
        (
            [{"rouge": {"types": ["rouge0"]}}],
            r"score.metrics.rouge.types\[0\]: expected str matching regex",
        ),
        ([{"rouge": {"types": ["rougeL", "rougeL"]}}], r"a type stands twice in \['rougeL', "),
        ([{"rouge": {}, "bleu": {}}], r"expected a name or a map of one name to its options"),
        (["rouge", {"rouge": {"stemmer": False}}], r"'rouge' stands twice with the same options"),
    ],
)
def test_bad_lists_are_named(entries: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_metrics(entries)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"confidence": 1.0}, "score.confidence: expected float < 1.0"),
        ({"replicates": 0}, "score.replicates: expected int >= 1"),
        ({"seed": 2**63}, "score.seed: "),
        ({"metric": ["rouge"]}, r"unknown key 'score.metric' \(did you mean metrics\?\)"),
    ],
)
def test_bad_settings_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_section(values, "score", ScoreConfig)


def test_which_metrics_count_errors() -> None:
    errors = {name for name, kind in METRICS.items() if kind.lower_is_better}
    assert errors == {"ter", "wer", "cer", "perplexity"}
