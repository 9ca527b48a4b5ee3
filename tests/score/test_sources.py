"""The hash of a module's sources follows imports, and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.score import sources
from pipeline.score.sources import hash_sources

FILES = {
    "mine/__init__.py": "",
    "mine/metric.py": "from . import near\nfrom helper import twice\n",
    "mine/near.py": "def f():\n    if True:\n        import lazy_helper.deep as d\n    return d\n",
    "mine/apart.py": "x = 1\n",
    "helper.py": "import json, numpy\ntry:\n    import not_there\nexcept ImportError: pass\n",
    "lazy_helper/__init__.py": "",
    "lazy_helper/deep.py": "y = 1\n",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sources, "_BEGAN_NS", 2**63)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    """As a new process would."""
    for cached in (sources._locations, sources._installed_version, sources._imports):
        cached.cache_clear()


@pytest.mark.parametrize(
    "name",
    ["mine/metric.py", "mine/near.py", "mine/__init__.py", "helper.py", "lazy_helper/deep.py"],
)
def test_what_is_imported_anywhere_counts(place: Path, name: str) -> None:
    before = hash_sources("mine.metric")
    assert before is not None
    assert hash_sources("mine.metric") == before
    (place / name).write_text(FILES[name] + "# edited\n")
    assert hash_sources("mine.metric") != before


def test_what_is_not_imported_does_not_count(place: Path) -> None:
    before = hash_sources("mine.metric")
    (place / "mine/apart.py").write_text("x = 2\n")
    (place / "mine/new.py").write_text("")
    assert hash_sources("mine.metric") == before
    assert hash_sources("mine.metric", without="mine.near") != before
    (place / "mine/near.py").write_text("")
    assert hash_sources("mine.metric") != before


def test_versions_of_libraries_and_of_python_count(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hash_sources("mine.metric")
    version = sources.version
    monkeypatch.setattr(
        sources, "version", lambda name: "0.0" if name == "numpy" else version(name)
    )
    forget()
    upgraded = hash_sources("mine.metric")
    assert upgraded != before
    monkeypatch.setattr(sources.platform, "python_version", lambda: "4.0.0")
    assert hash_sources("mine.metric") not in (before, upgraded)


def test_a_module_without_a_source(place: Path) -> None:
    assert hash_sources("mine.nowhere") is None
    assert hash_sources("nothing_of_that_name") is None
    assert hash_sources("mine.metric", "mine.nowhere") is None


def test_a_file_younger_than_the_process_may_not_be_what_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the files were written after this process began
    monkeypatch.syspath_prepend(place)
    assert hash_sources("mine.metric") is None
    for path in place.rglob("*.py"):
        os.utime(path, (1000, 1000))
    before = hash_sources("mine.metric")
    assert before is not None
    (place / "lazy_helper/deep.py").write_text("y = 2\n")
    assert hash_sources("mine.metric") is None


def test_nothing_is_imported_to_find_out(place: Path) -> None:
    (place / "helper.py").write_text("raise SystemExit('imported')\n")
    assert hash_sources("mine.metric") is not None
    assert "helper" not in sys.modules


def test_a_file_that_cannot_be_parsed_still_counts(place: Path) -> None:
    (place / "helper.py").write_text("print 1\n")
    before = hash_sources("mine.metric")
    (place / "helper.py").write_text("print 2\n")
    assert hash_sources("mine.metric") != before


def test_a_metric_of_ours_depends_on_its_own_files_only() -> None:
    def followed(module: str) -> set[str]:
        names = {module}
        waiting = [module]
        while waiting:
            name = waiting.pop()
            path = sources._path(name)
            package = name.rpartition(".")[0]
            new = set(sources._imports(path.read_bytes(), package)) - names if path else set()
            new = {name for name in new if name.startswith("pipeline.") and sources._path(name)}
            names |= new
            waiting += new
        return names

    bleu = followed("pipeline.score.metrics.bleu")
    assert {"pipeline.score.words", "pipeline.score.ngrams", "pipeline.score.buffers"} <= bleu
    assert "pipeline.score.metrics.rouge" not in bleu
    assert "pipeline.score.run" not in bleu
