from __future__ import annotations

import json
import pickle
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from pipeline.config import parse_section
from pipeline.errors import ConfigError
from pipeline.score.config import ScoreConfig
from pipeline.score.normalize import Normalizer
from pipeline.score.run import score
from tests.score.sets import write_set
from tests.score.strategies import any_text


def _normalizer(*steps: Any) -> Normalizer:
    return Normalizer(parse_section({"normalize": list(steps)}, "score", ScoreConfig).normalize)


def test_steps_are_done_in_their_order() -> None:
    assert _normalizer()(" A ") == " A "
    assert _normalizer("strip")(" A\u3000") == "A"
    assert _normalizer("lowercase")("ΣΑΣ") == "σας"
    assert _normalizer("nfkc")("ﬁ①") == "fi1"
    assert _normalizer({"regex": [r"(\d)[,.](\d)", r"\1\2"]})("1,000.5") == "10005"
    assert _normalizer("lowercase", {"regex": ["a", "B"]})("A") == "B"
    assert _normalizer({"regex": ["a", "B"]}, "lowercase")("Aa") == "ab"


@settings(deadline=None, max_examples=50)
@given(text=any_text)
def test_each_step_is_pythons(text: str) -> None:
    both = pickle.loads(pickle.dumps(_normalizer("nfkc", "strip")))
    assert both(text) == unicodedata.normalize("NFKC", text).strip()


def test_the_signature_cannot_be_misread() -> None:
    steps = ["strip", {"regex": ["a|b:c", "+,"]}]
    assert _normalizer(*steps).signature == "strip+regex(a%7Cb%3Ac,%2B%2C)"
    assert _normalizer().signature == ""


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("upper", r"score.normalize\[0\]: expected lowercase, nfkc, strip, got 'upper'"),
        ({"regexp": ["a", "b"]}, r"score.normalize\[0\]: "),
        ({"regex": ["a"]}, r"score.normalize\[0\].regex: expected list of length 2"),
        ({"regex": ["(", ""]}, r"the regular expression '\(' .* cannot be used: missing \)"),
        ({"regex": ["", r"\7"]}, "cannot be used: invalid group reference 7"),
    ],
)
def test_bad_steps_are_named(step: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _normalizer(step)


def _score(folder: Path, **settings: Any) -> dict[str, Any]:
    config = parse_section({"replicates": 10, **settings}, "score", ScoreConfig)
    return score(folder / "set", folder / "scores", folder / "metrics.json", config)


def test_predictions_and_references_are_normalised(tmp_path: Path) -> None:
    write_set(tmp_path / "set", ["A B", "x"], [["a  b"], ["X", "-"]], text=True)
    plain = _score(tmp_path, metrics=["exact_match"])
    steps = ["lowercase", {"regex": [r"[\s-]+", " "]}]
    summary = _score(tmp_path, metrics=["exact_match", "wer"], normalize=steps)
    assert plain["metrics"]["exact_match"]["scores"]["exact_match"]["value"] == 0
    assert summary["metrics"]["exact_match"]["scores"]["exact_match"]["value"] == 1
    # What normalisation leaves blank beside another reference is no reference.
    assert (plain["counts"]["dropped_references"], summary["counts"]["dropped_references"]) == (
        0,
        1,
    )
    for metric in summary["metrics"].values():
        assert metric["signature"].endswith("|norm:lowercase+regex([\\s-]%2B, )")
    assert "norm" not in plain["metrics"]["exact_match"]["signature"]
    assert (plain["normalize"], summary["normalize"]) == ([], steps)
    assert json.loads((tmp_path / "scores/summary.json").read_bytes()) == summary
    # The content is what was predicted, whatever is done to it here.
    assert plain["content"] == summary["content"]


def test_decode_options_of_ones_own(tmp_path: Path) -> None:
    write_set(tmp_path / "set", ["the cat"], [["the cat"]])
    as_written = _score(tmp_path, metrics=["exact_match"])
    same = _score(tmp_path, metrics=["exact_match"], decode={"skip_special_tokens": True})
    kept = _score(tmp_path, metrics=["exact_match"], decode={"skip_special_tokens": False})
    values = [
        summary["metrics"]["exact_match"]["scores"]["exact_match"]["value"]
        for summary in (as_written, same, kept)
    ]
    assert values == [1, 1, 0]  # the end-of-text token is in the text
    assert kept["metrics"]["exact_match"]["signature"].endswith("|decode:skip_special_tokens=no")
    assert "decode" not in as_written["metrics"]["exact_match"]["signature"]
    assert kept["decode"] == {"skip_special_tokens": False, "clean_up_tokenization_spaces": None}
    assert as_written["content"] == same["content"] != kept["content"]


def test_text_is_not_decoded(tmp_path: Path) -> None:
    write_set(tmp_path / "set", ["a"], [["a"]], text=True)
    with pytest.raises(ConfigError, match="holds text, which is not decoded; set clean_up_tok"):
        _score(tmp_path, decode={"clean_up_tokenization_spaces": True})
