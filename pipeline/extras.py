"""A stage whose install extra is missing says so before it does anything."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from pipeline.errors import MissingExtraError


def require_extra(stage: str, extra: str, modules: Iterable[str], remedy: str = "") -> None:
    """Check that ``modules`` can be imported, without importing them.

    Raises:
        MissingExtraError: names stage, missing modules, extra and what to type.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{stage} needs the install extra [{extra}] ({', '.join(missing)} not installed): "
            f"in the project's folder, pip install -c constraints.txt '.[{extra}]'{remedy}"
        )
