"""One folder of tiny models for all tests of the bridge into training."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("ACCELERATE_USE_CPU", "true")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where ``trainers.load`` keeps them."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """No bars, and no word of what transformers aligned."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    yield
    logging.set_verbosity(level)
    logging.enable_progress_bar()
