"""docs/metrics.md: every example runs, and every option of every metric stands there."""

from __future__ import annotations

import doctest
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pipeline.config import parse_section, parse_yaml
from pipeline.report.table import score_lines
from pipeline.score.config import ScoreConfig
from pipeline.score.metrics import METRICS, NAMES
from pipeline.score.run import score
from tests.project import ROOT
from tests.score.sets import write_set

DOC = (ROOT / "docs/metrics.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOC, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with the files that the page shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for block in blocks("python"):
        named = re.match(r"# (\w+)\.py\n", block)
        if named:
            Path(f"{named[1]}.py").write_text(block)
            monkeypatch.delitem(sys.modules, named[1], raising=False)
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("shared_words", None)


@pytest.mark.usefixtures("folder")
def test_the_examples() -> None:
    examples = "\n".join(block for block in blocks("python") if block.startswith(">>>"))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, "docs/metrics.md", None, 0)
    output: list[str] = []
    failed, run = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(parsed, out=output.append)
    assert failed == 0, "".join(output)
    assert run > 40


def test_the_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = pytest.importorskip("evaluate")
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", str(folder / "modules"))
    for name in [name for name in sys.modules if name.startswith("evaluate_modules")]:
        monkeypatch.delitem(sys.modules, name)
    # Where evaluate put the modules of an earlier test, which would be found first.
    paths = [path for path in sys.path if not (Path(path) / "evaluate_modules").exists()]
    monkeypatch.setattr(sys, "path", paths)
    write_set(folder / "set", ["the cat sat on the mat"], [["the cat is on the mat"]])
    printed = []
    for block in blocks("yaml"):
        values = parse_yaml(block, "docs/metrics.md")["score"]
        config = parse_section({"replicates": 10, **values}, "score", ScoreConfig)
        summary = score(folder / "set", folder / "scores", folder / "metrics.json", config)
        printed += [f"{line.name} {line.value}" for line in score_lines(summary)]
    (shown,) = blocks("text")
    for line in shown.splitlines():
        assert re.sub(r"  +", " ", line) in printed


def test_every_metric_and_option_stands_there() -> None:
    for name in NAMES:
        assert f"[`{name}`" in DOC or f"`{name}`](" in DOC, name
    for name, kind in METRICS.items():
        for field in msgspec.structs.fields(kind.options_type):
            assert re.search(rf"`{field.name}\b", DOC), (name, field.name)
    for name in (field.name for field in msgspec.structs.fields(ScoreConfig)[:3]):
        assert f"{name}:" in DOC
