"""``package.module:name``: something of the person's own, from the working directory or installed.

``python -m`` puts the working directory on the path and the console command does not; here both
have it, last, so that nothing installed is hidden. joblib's workers are started with the path of
this process.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError, one_line

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def import_dotted(path: str, where: str) -> Any:
    """What ``path`` names.

    Args:
        path: ``package.module:name``.
        where: the key of params.yaml, for messages.

    Raises:
        ConfigError: not such a path, the module cannot be imported, or has no such name.
    """
    if _DOTTED.fullmatch(path) is None:
        raise ConfigError(f"{where}: expected package.module:name, got '{path}'")
    module_name, _, name = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # the person's code may raise anything
        reason = (str(error).splitlines() or [""])[0]
        raise ConfigError(
            f"{where}: the module '{module_name}' cannot be imported: "
            f"{type(error).__name__}: {reason} (looked in the working directory {os.getcwd()} "
            "and among what is installed)"
        ) from error
    if not hasattr(module, name):
        raise ConfigError(
            f"{where}: '{module_name}' ({module.__file__}) has no '{name}'; write it there, or "
            "correct the name"
        )
    return getattr(module, name)


def failed(what: str, error: BaseException) -> ConfigError:
    """The error to raise where the person's code raised ``error``; says where it stands."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return ConfigError(
        f"{what} failed: {type(error).__name__}: {one_line(str(error))} "
        f"({Path(frame.filename).name} line {frame.lineno}); correct it there"
    )
