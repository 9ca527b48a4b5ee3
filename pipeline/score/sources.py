"""What a module's results depend on besides its input: its sources, and what it imports.

A module is followed through all that it imports, wherever the import stands. Of installed
packages the version counts, of everything else (this package, a script of the person's) the bytes
of each file. So a cache that has this among its keys notices an edit in a helper, an upgrade and
another Python, and does not mind an edit in a metric that is not asked. Not seen: modules that are
imported under a computed name, and files that code reads; both belong in a metric's signature.

A file that was written after this process began may not be the code that runs here: no hash then.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import all_suffixes
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

_PACKAGE = __name__.partition(".")[0]
_BEGAN_NS = time.time_ns()
_INSTALLED = ("site-packages", "dist-packages")


def hash_sources(*modules: str, without: str | None = None) -> str | None:
    """One hash over modules and all they import.

    Args:
        modules: their names.
        without: a package that is not followed.

    Returns:
        64 hex digits; None where the source of one of ``modules`` is not to be found, or may not
        be what was imported.
    """
    files: dict[str, str] = {}
    versions = {"python": platform.python_version()}
    tops = {_PACKAGE, *(_top(module) for module in modules)}
    waiting = [*modules]
    while waiting:
        name = waiting.pop()
        top = _top(name)
        if name in files or top in versions or top in sys.stdlib_module_names:
            continue
        if without is not None and f"{name}.".startswith(f"{without}."):
            continue
        installed = None if top in tops else _installed_version(name)
        if installed is not None:
            versions[top] = installed
            continue
        path = _path(name)
        if path is not None:
            if path.stat().st_mtime_ns > _BEGAN_NS:
                return None
            content = path.read_bytes()
            files[name] = hashlib.sha256(content).hexdigest()
            if path.suffix == ".py":
                package = name if path.stem == "__init__" else name.rpartition(".")[0]
                waiting += _imports(content, package)
            if top != _PACKAGE:  # whose packages do nothing when they are imported
                waiting.append(name.rpartition(".")[0] or name)
        elif name in modules:
            return None
    return hashlib.sha256(json.dumps([files, versions], sort_keys=True).encode()).hexdigest()


def _top(module: str) -> str:
    return module.partition(".")[0]


@lru_cache(maxsize=256)
def _locations(top: str) -> tuple[tuple[str, ...], str | None]:
    """Folders of a package, or the file of a module, without importing it."""
    loaded = sys.modules.get(top)
    try:
        spec = loaded.__spec__ if loaded is not None else importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return (), None
    if spec is None:
        return (), getattr(loaded, "__file__", None)
    return tuple(spec.submodule_search_locations or ()), spec.origin


@lru_cache(maxsize=256)
def _installed_version(module: str) -> str | None:
    """Version of the installed package that a module is of; None where it is of none."""
    top = _top(module)
    folders, origin = _locations(top)
    places = [*folders, origin or ""]
    if not any(name in Path(place).parts for place in places for name in _INSTALLED):
        return None
    for name in (top, ".".join(module.split(".")[:2])):  # sacrebleu, ruamel.yaml
        with suppress(PackageNotFoundError):
            return version(name)
    names = packages_distributions().get(top, [])  # reads the files of all packages
    return ",".join(sorted(f"{name} {version(name)}" for name in names)) or None


def _path(module: str) -> Path | None:
    """The file of ``module``; None for an attribute of one, or what is not there."""
    top, *rest = module.split(".")
    folders, origin = _locations(top)
    if not rest and not folders:
        return Path(origin) if origin is not None and Path(origin).is_file() else None
    for folder in folders:
        base = Path(folder, *rest)
        for suffix in all_suffixes():
            package, file = base / f"__init__{suffix}", base.with_name(base.name + suffix)
            for path in (package, file) if rest else (package,):
                if path.is_file():
                    return path
    return None


@lru_cache(maxsize=256)
def _imports(content: bytes, package: str) -> tuple[str, ...]:
    """Names of all modules that a file may import; those that are attributes are among them."""
    names: dict[str, None] = {}
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # of another Python: it cannot be imported either
        return ()
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            names.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if node.level else []
            base = parts[: len(parts) - node.level + 1] + (node.module or "").split(".")
            origin = ".".join(part for part in base if part)
            names[origin] = None
            names.update(dict.fromkeys(f"{origin}.{alias.name}" for alias in node.names))
    return tuple(names)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in ``node``; expressions, which are most of a tree, hold none."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner = getattr(node, block, ())
        for statement in inner if isinstance(inner, list) else ():
            yield statement
            yield from _statements(statement)
