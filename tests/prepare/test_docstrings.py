from __future__ import annotations

import os
import platform
import warnings
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import DataError
from pipeline.prepare.docstrings import open_docstrings
from pipeline.prepare.roles import Roles
from tests.prepare.files import rows, run

BODY = "A body of fifteen words, " + "no more and no less than that: " + "one two three."


def pairs(folder: Path) -> list[dict[str, Any]]:
    source = open_docstrings(folder)
    columns = source.schema.names
    tables = list(source.iterate(columns))
    return [row for table in tables for row in table.to_pylist()]


def module(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def documented(summary: str, body: str = BODY, head: str = "def f():") -> str:
    return f'{head}\n    r"""{summary}\n\n    {body}\n    """\n'


def test_functions_methods_and_classes_wherever_they_stand(tmp_path: Path) -> None:
    assert len(BODY.split()) == 15
    text = (
        documented("Add two numbers.")
        + documented("A class of things.", head="class C:", body=BODY + " Also.")
        + '    async def m(self):\n        """Return the thing.\n\n        '
        + f'{BODY} Twice.\n        """\n'
        + 'if True:\n    def g():\n        """Only on some systems.\n\n        '
        + f'{BODY} Thrice.\n        """\n'
    )
    module(tmp_path, "package/inner.py", text)
    module(tmp_path, "package/__init__.py", documented("Of the package.", BODY + " Four."))
    found = {row["id"]: row for row in pairs(tmp_path)}
    assert set(found) == {
        "package/inner.py:f:1",
        "package/inner.py:C:6",
        "package/inner.py:C.m:11",
        "package/inner.py:g:17",
        "package/__init__.py:f:1",
    }
    assert found["package/inner.py:f:1"] == {
        "id": "package/inner.py:f:1",
        "document": BODY,
        "summary": "Add two numbers.",
        "module": "package.inner",
    }
    assert found["package/__init__.py:f:1"]["module"] == "package"


@pytest.mark.parametrize(
    ("summary", "body"),
    [
        ("Two words", BODY),
        ("word " * 26, BODY),
        ("A summary of\n    two lines.", BODY),
        ("Three words here.", "Too short a body."),
        ("Three words here.", "word " * 301),
    ],
)
def test_what_makes_no_pair(summary: str, body: str, tmp_path: Path) -> None:
    module(tmp_path, "a.py", documented(summary, body))
    with pytest.raises(DataError, match="holds no documented Python sources; name a data set"):
        pairs(tmp_path)


def test_a_pair_counts_once_and_the_order_is_that_of_the_content(tmp_path: Path) -> None:
    for folder in (tmp_path / "one", tmp_path / "two"):
        names = ["b.py", "a.py"] if folder.name == "one" else ["c.py", "d.py"]
        module(folder, names[0], documented("The first of them."))
        module(folder, names[1], documented("The second of them."))
        module(folder, "z.py", documented("The first of them."))
    one, two = pairs(tmp_path / "one"), pairs(tmp_path / "two")
    assert [row["summary"] for row in one] == [row["summary"] for row in two]
    assert len(one) == 2
    assert {row["id"] for row in one} == {"a.py:f:1", "b.py:f:1"}


def test_tests_and_installed_packages_are_left_out(tmp_path: Path) -> None:
    module(tmp_path, "a.py", documented("The only one."))
    for folder in ("test", "x/tests", "site-packages/y", "idlelib", "__pycache__"):
        module(tmp_path, f"{folder}/b.py", documented(f"One in {folder}."))
    assert [row["id"] for row in pairs(tmp_path)] == ["a.py:f:1"]


def test_files_that_do_not_parse_are_left_out_and_none_warns(tmp_path: Path) -> None:
    module(tmp_path, "a.py", documented("The only one.") + 'x = "\\d"\nx is 3\n')
    module(tmp_path, "bad.py", "def f(:\n")
    (tmp_path / "null.py").write_bytes(b"x = '\0'\n")
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(pairs(tmp_path)) == 1


def test_the_standard_library(tmp_path: Path) -> None:
    result = run(tmp_path, keep=["module"])
    examples = rows(tmp_path)
    # 1,773 with Python 3.11.7; other versions have some hundreds more or less.
    assert 1200 < len(examples) < 3000
    assert result.where == "the standard library's docstrings"
    assert len({row["id"] for row in examples}) == len(examples)
    assert all(3 <= len(row["references"][0].split()) <= 25 for row in examples)
    assert all(15 <= len(row["document"].split()) <= 300 for row in examples)
    assert not any("\n" in row["references"][0] for row in examples)
    assert platform.python_version() in (tmp_path / "source").read_text()

    run(tmp_path, limit=96)
    first = rows(tmp_path)
    assert [row["id"] for row in first] == [row["id"] for row in examples[:96]]
    before = (tmp_path / "examples.parquet").read_bytes()
    run(tmp_path, limit=96)
    assert (tmp_path / "examples.parquet").read_bytes() == before


def test_a_column_that_it_lacks() -> None:
    source = open_docstrings(Path(os.__file__).parent / "json")
    roles = Roles(id="id", references=("summary",), inputs=("text",), keep=())
    with pytest.raises(DataError, match="docstrings has no column 'text' .known: document, id, mo"):
        source.read(roles, None)
