from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from pipeline.config import parse_section
from pipeline.errors import ConfigError, MissingExtraError
from pipeline.score.metrics.rouge import Rouge, RougeOptions
from pipeline.score.rouge_library import LIBRARIES, load_scorer
from pipeline.score.rouge_tokenizers import load_tokenizer
from pipeline.score.sentences import split_sentences
from pipeline.score.words import SacrebleuTokenizer, sacrebleu_tokenizer
from tests.score.strategies import any_text, rows

TYPES = ("rouge1", "rouge2", "rouge3", "rouge9", "rougeL", "rougeLsum")


@pytest.fixture
def only_rouge_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rouge_score_rs.rouge_scorer", None)


def _by_name(metric: Rouge, row: list[float]) -> dict[str, float]:
    return dict(zip([column.name for column in metric.columns], row, strict=True))


def _check_against_rouge_score(stemmer: bool, prediction: str, references: list[str]) -> None:
    metric = Rouge(RougeOptions(types=TYPES, stemmer=stemmer))
    (row,) = metric.statistics([prediction], [references]).tolist()
    found = _by_name(metric, row)
    oracle = rouge_scorer.RougeScorer(list(TYPES), use_stemmer=stemmer)
    for kind, score in oracle.score_multi(references, prediction).items():
        assert found[f"{kind}.precision"] == score.precision
        assert found[f"{kind}.recall"] == score.recall
        assert found[f"{kind}.fmeasure"] == score.fmeasure
    assert found["rouge.rows"] == 1


@settings(deadline=None, max_examples=150)
@given(
    stemmer=st.booleans(),
    prediction=any_text,
    references=st.lists(any_text, min_size=1, max_size=3),
)
def test_rows_equal_rouge_score(stemmer: bool, prediction: str, references: list[str]) -> None:
    _check_against_rouge_score(stemmer, prediction, references)


@pytest.mark.parametrize(
    ("prediction", "references"),
    [
        ("", [""]),
        ("...", ["the cat"]),
        ("the cat", ["", "the\ncat", "the cat"]),
        ("first line\nsecond line\n\nthird", ["second line\nfirst line", "third\nfirst"]),
        ("running runners ran", ["run runner running"]),
        ("кошка", ["кошка"]),
    ],
)
@pytest.mark.parametrize("stemmer", [False, True])
def test_degenerate_rows_equal_rouge_score(
    stemmer: bool, prediction: str, references: list[str]
) -> None:
    _check_against_rouge_score(stemmer, prediction, references)


@pytest.mark.usefixtures("only_rouge_score")
def test_the_fallback_is_the_oracle_itself() -> None:
    _check_against_rouge_score(True, "the cats sat", ["a cat sits", "the cat sat"])
    assert "version:rouge-score-0.1.2" in Rouge().signature(1)


@settings(deadline=None, max_examples=50)
@given(examples=rows())
def test_both_libraries_give_the_same_bits(examples: list[tuple[str, list[str]]]) -> None:
    predictions, references = [row[0] for row in examples], [row[1] for row in examples]
    metric = Rouge(RougeOptions(stemmer=True))
    fast = metric.statistics(predictions, references)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "rouge_score_rs.rouge_scorer", None)
        assert metric.statistics(predictions, references).tolist() == fast.tolist()


def test_without_either_library_the_message_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in LIBRARIES:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match="pip install rouge-score-rs"):
        Rouge().statistics(["a"], [["a"]])


def test_golden_numbers() -> None:
    # Oracle: rouge_score 0.1.2, RougeScorer(["rouge1", "rougeL"], use_stemmer=True), its README's
    # example: 'The quick brown dog jumps on the log.' scored against the fox.
    metric = Rouge(RougeOptions(types=("rouge1", "rougeL"), stemmer=True))
    fox = "The quick brown fox jumps over the lazy dog"
    row = metric.statistics(["The quick brown dog jumps on the log."], [[fox]])[0].tolist()
    found = _by_name(metric, row)
    assert found["rouge1.precision"] == 0.75
    assert found["rouge1.recall"] == 0.6666666666666666
    assert found["rouge1.fmeasure"] == 0.7058823529411765
    assert found["rougeL.fmeasure"] == 0.5882352941176471


def test_the_score_of_a_set_is_the_mean_f1_with_precision_and_recall_beside_it() -> None:
    metric = Rouge(RougeOptions(types=("rouge1",)))
    totals = metric.statistics(["a b", "c"], [["a"], ["d"]]).sum(axis=0).tolist()
    assert metric.scores(totals) == {
        "rouge1": 1 / 3,
        "rouge1.precision": 0.25,
        "rouge1.recall": 0.5,
    }


def test_signature() -> None:
    signature = Rouge(RougeOptions(stemmer=True)).signature(2)
    assert signature.startswith("nrefs:2|stem:yes|tok:default|lsum:newline|version:rouge-score-rs-")
    assert Rouge().signature().startswith("nrefs:var|stem:no|")


MODULE = """
def words(text):
    return text.split()

def spaces(text):
    return text.split(" ")

def text(text):
    return text

def fails(text):
    return {}[0]

NUMBER = 5
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module in the working directory, as a person has it."""
    (tmp_path / "own_tokenizer.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("own_tokenizer", None)
    load_tokenizer.cache_clear()
    load_scorer.cache_clear()


class Oracle:
    """sacreBLEU's tokenizer as rouge_score takes one."""

    def __init__(self, name: str) -> None:
        self._tokenizer = sacrebleu_tokenizer(name)

    def tokenize(self, text: str) -> list[str]:
        return self._tokenizer(text.rstrip().lower()).split()


@pytest.mark.parametrize("tokenizer", get_args(SacrebleuTokenizer)[:5])
@settings(deadline=None, max_examples=30)
@given(prediction=any_text, references=st.lists(any_text, min_size=1, max_size=3))
def test_sacrebleus_tokenizers_in_rouge_score(
    tokenizer: str, prediction: str, references: list[str]
) -> None:
    metric = Rouge(RougeOptions(types=TYPES, tokenizer=tokenizer))
    found = _by_name(metric, metric.statistics([prediction], [references])[0].tolist())
    oracle = rouge_scorer.RougeScorer(list(TYPES), tokenizer=Oracle(tokenizer))
    for kind, score in oracle.score_multi(references, prediction).items():
        assert found[f"{kind}.precision"] == score.precision
        assert found[f"{kind}.fmeasure"] == score.fmeasure


@settings(deadline=None, max_examples=60)
@given(
    tokenizer=st.sampled_from(["default", "13a", "char"]),
    prediction=any_text,
    references=st.lists(any_text, min_size=1, max_size=2),
)
def test_rules_split_for_rouge_lsum_alone(
    tokenizer: str, prediction: str, references: list[str]
) -> None:
    options = {"types": TYPES, "tokenizer": tokenizer}
    metric = Rouge(RougeOptions(**options, lsum="rules"))
    found = _by_name(metric, metric.statistics([prediction], [references])[0].tolist())
    plain = Rouge(RougeOptions(**options))
    expected = _by_name(plain, plain.statistics([prediction], [references])[0].tolist())
    on_lines = [["\n".join(split_sentences(text)) for text in references]]
    split = plain.statistics(["\n".join(split_sentences(prediction))], on_lines)
    for name, value in _by_name(plain, split[0].tolist()).items():
        assert found[name] == (value if name.startswith("rougeLsum") else expected[name])


@pytest.mark.usefixtures("own")
def test_rules_leave_the_text_of_the_other_types_as_it_is() -> None:
    # A line break in place of the space would join two tokens of this tokenizer.
    options = {"types": ("rouge1", "rougeLsum"), "tokenizer": "own_tokenizer:spaces"}
    metric = Rouge(RougeOptions(**options, lsum="rules"))
    found = metric.statistics(["One. Two"], [["Two One."]])[0].tolist()
    assert _by_name(metric, found)["rouge1.fmeasure"] == 1


def test_rules_change_rouge_lsum() -> None:
    # The sentences stand the other way round: in one line only the longest of them matches.
    text, swapped = "A cat sat. One dog ran off.", "One dog ran off. A cat sat."
    for lsum, expected in (("newline", 4 / 7), ("rules", 1.0)):
        metric = Rouge(RougeOptions(types=("rougeLsum",), lsum=lsum))
        found = _by_name(metric, metric.statistics([text], [[swapped]])[0].tolist())
        assert found["rougeLsum.fmeasure"] == pytest.approx(expected, abs=1e-15)


# Oracle: rouge_score 0.1.2 with a tokenizer that splits as UAX #29 does here, by hand.
@pytest.mark.parametrize(
    ("tokenizer", "prediction", "reference", "rouge1"),
    [
        ("default", "кошка сидела", "кошка спала", 0.0),
        ("unicode", "Кошка, сидела!", "кошка спала", 0.5),
        ("unicode", "बिल्ली बैठी", "बिल्ली सोई", 0.5),
        ("unicode", "قطة جلست", "قطة نامت", 0.5),
        ("character", "我爱猫。", "我爱狗", 2 / 3),
        ("zh", "我爱猫", "我爱狗", 2 / 3),
        ("13a", "The cat.", "the cat", 0.8),
    ],
)
def test_other_scripts(tokenizer: str, prediction: str, reference: str, rouge1: float) -> None:
    metric = Rouge(RougeOptions(types=("rouge1",), tokenizer=tokenizer))
    found = metric.statistics([prediction], [[reference]])
    assert found[0, 3] == pytest.approx(rouge1, abs=1e-15)


@pytest.mark.parametrize("tokenizer", ["unicode", "character"])
@pytest.mark.usefixtures("only_rouge_score")
def test_native_tokenizers_without_their_library(tokenizer: str) -> None:
    metric = Rouge(RougeOptions(tokenizer=tokenizer))
    with pytest.raises(MissingExtraError, match=f"tokenizer {tokenizer} .* rouge-score-rs"):
        metric.statistics(["a"], [["a"]])


@pytest.mark.usefixtures("only_rouge_score")
def test_the_fallback_takes_tokenizers_and_rules() -> None:
    metric = Rouge(RougeOptions(types=("rouge1", "rougeLsum"), tokenizer="zh", lsum="rules"))
    assert metric.statistics(["猫。狗。"], [["狗。猫。"]])[0, 1:7].tolist() == [1] * 6


@pytest.mark.usefixtures("own")
def test_a_tokenizer_of_the_persons_own() -> None:
    metric = Rouge(RougeOptions(types=("rouge1",), tokenizer="own_tokenizer:words"))
    assert metric.statistics(["Кот. A"], [["Кот. B"]])[0, 3] == 0.5
    assert "|tok:own_tokenizer.words|" in metric.signature(1)
    fails = Rouge(RougeOptions(tokenizer="own_tokenizer:fails"))
    with pytest.raises(ConfigError, match="'own_tokenizer:fails' failed: KeyError: 0 .own_tok"):
        fails.statistics(["a"], [["a"]])
    wrong = Rouge(RougeOptions(tokenizer="own_tokenizer:text"))
    with pytest.raises(ConfigError, match="'own_tokenizer:text' returned str for 'a'; expected"):
        wrong.statistics(["a"], [["a"]])


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokenizer": "unicod"}, r"no tokenizer 'unicod' \(did you mean unicode\?\)"),
        ({"tokenizer": "nowhere:f"}, "the module 'nowhere' cannot be imported: ModuleNotFound"),
        ({"tokenizer": "own_tokenizer:f"}, r"'own_tokenizer' \(.*own_tokenizer.py\) has no 'f'"),
        ({"tokenizer": "own_tokenizer:NUMBER"}, "'own_tokenizer:NUMBER' is 5, not a function"),
        ({"tokenizer": "a b:f"}, "expected package.module:name, got 'a b:f'"),
        ({"tokenizer": "zh", "stemmer": True}, "stemmer does not work with the tokenizer zh"),
        ({"lsum": "nltk"}, "score.metrics.rouge.lsum: expected newline, rules, got 'nltk'"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Rouge(parse_section(options, "score.metrics.rouge", RougeOptions))


def _warnings(tokenizer: str, *references: str) -> list[str]:
    metric = Rouge(RougeOptions(tokenizer=tokenizer))
    statistics = metric.statistics(["x"] * len(references), [[text] for text in references])
    return metric.warnings(statistics.sum(axis=0).tolist())


def test_a_warning_names_the_tokenizer_to_use() -> None:
    (russian,) = _warnings("default", "Кошка")
    assert russian == (
        "the tokenizer default throws away 100% of the letters of the references, so these scores "
        "say little; use tokenizer: unicode"
    )
    assert _warnings("default", "हिन्दी")[0].endswith("use tokenizer: unicode")
    assert _warnings("default", "我爱猫 ok")[0].endswith("use tokenizer: character")
    assert _warnings("default", "ฉันรักแมว")[0].endswith("use tokenizer: character")
    for tokenizer in ("unicode", "character", "13a", "zh"):
        assert _warnings(tokenizer, "Кошка 我爱猫 हिन्दी") == []


def test_a_warning_comes_above_5_percent() -> None:
    assert _warnings("default", "é" + 19 * "a") == []
    assert len(_warnings("default", "é" + 18 * "a")) == 1
    # Over all rows and references.
    assert _warnings("default", "é" + 18 * "a", "a") == []
    assert _warnings("default", "...", "123") == []


@pytest.mark.usefixtures("own")
def test_no_warning_of_a_tokenizer_of_the_persons_own_that_keeps_letters() -> None:
    assert _warnings("own_tokenizer:words", "Кошка 我爱猫") == []
