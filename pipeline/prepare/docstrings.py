"""The data set that needs no hub: documentation and its summary, from the standard library.

Each function, method and class of the running interpreter's standard library whose docstring has
a one-line summary of 3 to 25 words, a blank line, and a body of 15 to 300 words gives a pair: the
body is the document, the summary line the reference. A pair that occurs twice counts once. Tests,
demos and installed packages are left out.

The order is that of the sha256 of the content, so that the first rows are a sample that versions
of Python largely share (82 to 90 of 96; a seeded shuffle shares 2 to 7).
"""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import sysconfig
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from pipeline.errors import DataError
from pipeline.prepare.arrow import ArrowSource

SUMMARY_WORDS = range(3, 26)
BODY_WORDS = range(15, 301)
_LEFT_OUT = frozenset(
    {"__pycache__", "dist-packages", "idlelib", "lib2to3", "site-packages", "test", "tests"}
    | {"turtledemo"}
)
SCHEMA = pa.schema([(name, pa.string()) for name in ("id", "document", "summary", "module")])


def open_docstrings(folder: Path | None = None) -> ArrowSource:
    """The pairs of the Python files in ``folder``; None is the standard library.

    Columns: ``id`` (file, qualified name and line), ``document``, ``summary``, ``module``.

    Raises:
        DataError: no pairs, as where Python was installed without its sources.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    pairs: dict[str, tuple[str, str, str, str]] = {}
    for path in _python_files(folder):
        for pair in _pairs(path, path.relative_to(folder)):
            content = hashlib.sha256(f"{pair[1]}\0{pair[2]}".encode()).hexdigest()
            pairs.setdefault(content, pair)
    if not pairs:
        raise DataError(
            f"the standard library in {folder} holds no documented Python sources; name a data "
            "set in prepare.dataset"
        )
    columns = zip(*(pairs[content] for content in sorted(pairs)), strict=True)
    arrays = [pa.array(list(column), pa.string()) for column in columns]
    table = pa.table(arrays, schema=SCHEMA)

    def iterate(columns: Sequence[str]) -> Iterator[pa.Table]:
        yield table.select(list(columns))

    note = {"dataset": None, "python": platform.python_version()}
    return ArrowSource(
        "the standard library's docstrings", SCHEMA, table.num_rows, iterate, note=note
    )


def _python_files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        for name in sorted(names):
            if name.endswith(".py"):
                yield Path(parent, name)


def _pairs(path: Path, relative: Path) -> Iterator[tuple[str, str, str, str]]:
    """(id, document, summary, module) of each documented definition in a file, top to bottom."""
    try:
        with tokenize.open(path) as handle, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in string literals of that file
            tree = ast.parse(handle.read())
    except (OSError, SyntaxError, ValueError):  # a file that is broken on purpose, or not ours
        return
    parts = relative.with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    for name, node in _definitions(tree, ()):
        summary, separator, body = (ast.get_docstring(node) or "").partition("\n\n")
        document = body.strip()
        if (
            separator
            and "\n" not in summary
            and len(summary.split()) in SUMMARY_WORDS
            and len(document.split()) in BODY_WORDS
        ):
            identifier = f"{relative.as_posix()}:{name}:{node.lineno}"
            yield identifier, document, " ".join(summary.split()), module


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _definitions(tree: ast.AST, outer: tuple[str, ...]) -> Iterator[tuple[str, _Definition]]:
    """Each definition with its qualified name, also those in conditions and other bodies."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Definition):
            names = (*outer, node.name)
            yield ".".join(names), node
            yield from _definitions(node, names)
        elif not isinstance(node, ast.expr):  # which holds no definitions, and is most of a tree
            yield from _definitions(node, outer)
