"""``evaluate``: modules from a local script; no network."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import ConfigError, MissingExtraError
from pipeline.score.config import ScoreConfig
from pipeline.score.modules import parse_modules
from pipeline.score.run import score
from tests.score.sets import PREDICTIONS, REFERENCES, write_set

pytestmark = pytest.mark.usefixtures("evaluate_cache")

MODULE = """
import datasets
import evaluate
import numpy as np


class {name}(evaluate.Metric):
    def _info(self):
        return evaluate.MetricInfo(
            description="", citation="", inputs_description="",
            features=datasets.Features({{
                "predictions": datasets.Value("string"),
                "references": {references},
            }}),
        )

    def _compute(self, predictions, references, times=1):
        {compute}
"""
JOINED = """return {
            "texts": "|".join(predictions),
            "characters": times * sum(map(len, predictions)),
            "references": sum(map(len, references)),
            "lengths": [len(text) for text in predictions],
            "nothing": float("nan"),
            "drawn": float(np.random.random()),
        }"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    lists = 'datasets.Sequence(datasets.Value("string"))'
    for name, references, compute in (
        ("joined", lists, JOINED),
        ("single", 'datasets.Value("string")', JOINED),
        ("silent", lists, 'return {"text": "none"}'),
        ("failing", lists, 'raise RuntimeError("out of luck")'),
        ("leaving", lists, "raise SystemExit(3)"),
        ("giving", lists, "return {1: None, 2: [1.0], 3: {}}.get(times)"),
        ("arrays", lists, 'return {"scores": np.arange(times)}'),
    ):
        text = MODULE.format(name=name.title(), references=references, compute=compute)
        (folder / f"{name}.py").write_text(text)
    (folder / "numbers.py").write_text(
        (folder / "single.py").read_text().replace('Value("string")', 'Value("int32")')
    )
    (folder / "broken.py").write_text("import nothing_of_that_name\n")
    return folder


def _score(folder: Path, *entries: Any, **how: Any) -> dict[str, Any]:
    if not (folder / "set").exists():
        write_set(folder / "set", PREDICTIONS, REFERENCES, text=True)
    config = ScoreConfig(metrics=entries, replicates=10, **how)
    return score(folder / "set", folder / "scores", folder / "metrics.json", config)


def test_results_stand_among_the_others_without_an_interval(tmp_path: Path, scripts: Path) -> None:
    entry = {"evaluate": str(scripts / "joined.py")}
    summary = _score(tmp_path, "bleu", entry, normalize=("lowercase",))
    assert list(summary["metrics"]) == ["bleu", "evaluate[joined]"]
    found = summary["metrics"]["evaluate[joined]"]
    total = sum(map(len, PREDICTIONS))
    assert found["scores"]["evaluate[joined].characters"] == {
        "value": total, "low": None, "high": None,
    }  # fmt: skip
    # One row has two references, the blank one left out.
    assert found["scores"]["evaluate[joined].references"]["value"] == 6
    assert found["scores"]["evaluate[joined].nothing"] is None
    assert found["signature"].startswith("module:joined|config:default|compute:{}|code:")
    assert "|version:evaluate-0." in found["signature"]
    assert found["signature"].endswith("|norm:lowercase")
    written = json.loads((tmp_path / "metrics.json").read_bytes())
    assert written["evaluate[joined].characters"] == total
    assert "evaluate[joined].nothing" not in written
    # What draws draws the same again.
    np.random.seed(len(PREDICTIONS))
    assert _score(tmp_path, "bleu", entry, normalize=("lowercase",)) == summary


def test_texts_come_in_the_order_of_the_rows_over_all_chunks(
    tmp_path: Path, scripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(
        "pipeline.score.evaluate_module._numbers",
        lambda results, keys: seen.update(results) or {"x": 1.0},
    )
    _score(tmp_path, {"evaluate": str(scripts / "joined.py")}, n_jobs=2)
    assert seen["texts"] == "|".join(PREDICTIONS)


def test_options(tmp_path: Path, scripts: Path) -> None:
    options = {
        "path": str(scripts / "joined.py"),
        "compute": {"times": 3},
        "keys": ["characters", "lengths"],
    }
    summary = _score(tmp_path, {"evaluate": options})
    scores = summary["metrics"]["evaluate[joined]"]["scores"]
    total = sum(map(len, PREDICTIONS))
    assert [entry["value"] for entry in scores.values()] == [3 * total, total / len(PREDICTIONS)]
    assert 'compute:{"times":3}' in summary["metrics"]["evaluate[joined]"]["signature"]


def test_a_set_without_rows(tmp_path: Path, scripts: Path) -> None:
    write_set(tmp_path / "set", [], [], text=True)
    options = {"path": str(scripts / "joined.py"), "keys": ["characters"]}
    summary = _score(tmp_path, {"evaluate": options})
    assert summary["metrics"]["evaluate[joined]"]["scores"] == {"evaluate[joined].characters": None}


def test_an_array_of_numbers_is_a_list_of_numbers(tmp_path: Path, scripts: Path) -> None:
    options = {"path": str(scripts / "arrays.py"), "compute": {"times": 3}, "keys": ["scores"]}
    summary = _score(tmp_path, {"evaluate": options})
    (scores,) = summary["metrics"].values()
    assert scores["scores"]["evaluate[arrays].scores"]["value"] == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "{}/single.py"}, "single.py' takes one reference per row, and this set has sev"),
        ({"path": "{}/silent.py"}, "results of '.*silent.py' are text; none is a number; set keys"),
        (
            {"path": "{}/joined.py", "keys": ["f1"]},
            "are texts, characters, .*; keys asks for f1, each to be",
        ),
        ({"path": "{}/failing.py"}, "failing.py': compute failed: RuntimeError: out of luck"),
        ({"path": "{}/leaving.py"}, "compute failed: SystemExit: 3 .*leaving.py line 1"),
        ({"path": "{}/giving.py"}, "giving.py' gave None; its _compute is to give results by"),
        ({"path": "{}/giving.py", "compute": {"times": 2}}, r"giving.py' gave \[1.0\]; its"),
        ({"path": "{}/giving.py", "compute": {"times": 3}}, "are none; none is a number"),
        ({"path": "{}/broken.py"}, "broken.py' cannot be loaded: .*nothing_of_that_name"),
        ({"path": "{}/absent.py"}, "absent.py' cannot be loaded: FileNotFoundError"),
        ({"path": "{}/joined.py", "compute": {"a": 1}}, "compute failed: TypeError: .*'a'"),
        ({"path": "a", "key": []}, r"unknown key 'score.metrics.evaluate.key' \(did you mean keys"),
    ],
)
def test_what_does_not_work_is_named(
    tmp_path: Path, scripts: Path, options: dict[str, Any], message: str
) -> None:
    options["path"] = options["path"].format(scripts)
    with pytest.raises(ConfigError, match=message):
        _score(tmp_path, {"evaluate": options})


def test_a_module_that_takes_no_texts_is_named(tmp_path: Path, scripts: Path) -> None:
    write_set(tmp_path / "set", ["a", "b"], [["x"], ["y"]], text=True)
    with pytest.raises(ConfigError, match="numbers.py': add_batch failed: ValueError: "):
        _score(tmp_path, {"evaluate": str(scripts / "numbers.py")})


def test_without_the_package_the_extra_is_named(
    tmp_path: Path, scripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "evaluate", None)
    with pytest.raises(MissingExtraError, match=r"pip install .* '\.\[evaluate\]'$"):
        _score(tmp_path, {"evaluate": str(scripts / "joined.py")})


def test_labels() -> None:
    entries = ["bleu", {"evaluate": "rouge"}, {"evaluate": {"path": "a/rouge.py", "keys": ["x"]}}]
    assert [module.label for module in parse_modules(entries)] == [
        "evaluate[rouge,path=rouge]",
        "evaluate[rouge,path=a/rouge.py,keys=x]",
    ]
    with pytest.raises(ConfigError, match="'rouge' stands twice with the same options"):
        parse_modules([{"evaluate": "rouge"}, {"evaluate": "rouge"}])


def test_it_is_imported_only_when_asked_for() -> None:
    program = (
        "import sys; from pipeline.score.modules import parse_modules; "
        "parse_modules(['bleu']); sys.exit('evaluate' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
