from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.compare.axes import find_axes, read_axes
from pipeline.errors import ConfigError, ScoresError

PATTERN = "scores/{dataset}/{model}/{checkpoint}"


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(text: str) -> Path:
    path = Path("grid.yaml")
    path.write_text(text)
    return path


def test_the_file_gives_values_and_their_order() -> None:
    axes = read_axes(
        PATTERN,
        written("source: runs\nmodel: [b, a]\ncheckpoint: [1000, 0.5]\ndataset: [news]\n"),
    )
    assert axes.values == {"model": ("b", "a"), "checkpoint": ("1000", "0.5"), "dataset": ("news",)}
    cells = list(axes.along(["model", "checkpoint"]))
    assert [tuple(cell.values()) for cell in cells] == [
        *(("b", "1000"), ("b", "0.5"), ("a", "1000"), ("a", "0.5"))
    ]
    assert axes.folder({**cells[0], "dataset": "news"}) == Path("scores/news/b/1000")


def test_without_a_file_it_is_what_has_scores_numbers_in_their_order() -> None:
    for folder in ("x/m[1]/step-1000", "x/m[1]/step-200", "y/m[1]/step-200", "y/m[1]/deep/er"):
        (Path("scores [old]") / folder).mkdir(parents=True)
        (Path("scores [old]") / folder / "summary.json").touch()
    Path("scores [old]/x/m[1]/step-300").mkdir()  # nothing was scored there
    axes = find_axes("scores [old]/{dataset}/{model}/{checkpoint}")
    assert axes.values == {
        "dataset": ("x", "y"),
        "model": ("m[1]",),
        "checkpoint": ("step-200", "step-1000"),
    }


def test_a_pattern_is_a_path_however_it_is_written() -> None:
    for model in ("a", "b"):
        Path("scores", model).mkdir(parents=True)
        Path("scores", model, "summary.json").touch()
    for pattern in ("./scores/{model}", "scores//{model}/", str(Path.cwd() / "scores/{model}/.")):
        assert find_axes(pattern).values == {"model": ("a", "b")}, pattern


@pytest.mark.parametrize(
    ("pattern", "text", "message"),
    [
        ("scores/a", "", "scores/a names no axis: write it in braces"),
        ("scores/{}", "", r"\{\} is no name of an axis"),
        ("{a}/{a}", "", r"names the axis \{a\} twice"),
        ("{model}", "models: [a]", r"no key 'model' for \{model\} .*did you mean models\?"),
        ("{model}", "model: a", "model must be a list of values, got 'a'"),
        ("{model}", "model: []", r"model must be a list of values, got \[\]"),
        ("{model}", "model: [a, a]", "model holds 'a' twice"),
        ("{model}", "model: [true]", "model holds True; quote a value"),
        ("{model}", "model: [null]", "model holds None"),
        ("{model}", "[a]", "expected a list of values for each axis"),
        ("{model}", "model: [", "is not valid YAML"),
    ],
)
def test_what_is_refused(pattern: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_axes(pattern, written(text))


def test_nothing_there() -> None:
    with pytest.raises(ConfigError, match=r"--axes nowhere.yaml: cannot be read"):
        read_axes(PATTERN, Path("nowhere.yaml"))
    with pytest.raises(ScoresError, match="no folder of that form has a summary.json"):
        find_axes(PATTERN)
