"""One thin click command per DVC stage; ``stages.main`` is the ``twophase`` command over them."""

import importlib.util
import sys

# DVC runs `python -m stages.…` with the first Python on PATH, which need not be the project's.
if any(importlib.util.find_spec(name) is None for name in ("click", "msgspec", "pyarrow")):
    sys.exit(
        f"Error: twophase is not installed for {sys.executable}; use `make repro`, or activate the "
        "environment first (. .venv/bin/activate), or install it: pip install -c constraints.txt ."
    )
