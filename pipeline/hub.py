"""What fetch and prepare share about the hub: does anyone answer, and what its libraries say.

Both stages turn an error into one line that says what to do. The libraries would print a warning
for each of their retries before it, and the one for data sets retries for half a minute where
there is no network at all; so it is asked once, and told to be offline where nobody answers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGERS = ("datasets", "huggingface_hub", "httpx", "httpx2")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the warnings of the hub's libraries off stderr; their errors stay."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(max(logger.level, logging.ERROR))
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def unreachable_because() -> str | None:
    """Why the hub cannot be reached, asked once; None where anything answers, if with an error."""
    from huggingface_hub import constants
    from huggingface_hub.utils import (  # type: ignore[attr-defined]  # public, not in __all__
        get_session,
    )

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception as error:
        if not is_http_error(error):
            raise
        return cause(error)
    return None


@contextmanager
def offline() -> Iterator[None]:
    """Let the libraries look in their caches only, as ``HF_HUB_OFFLINE=1`` does."""
    import datasets
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def is_http_error(error: Exception) -> bool:
    """An HTTP or transport error, whichever client library this version of the hub's uses."""
    from huggingface_hub.errors import HfHubHTTPError

    client_error = HfHubHTTPError.__bases__[0]
    return isinstance(error, (client_error, OSError))


def cause(error: Exception) -> str:
    """What made a request fail, as one line."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return "HF_HUB_OFFLINE is set"
    origin = error.__cause__ if isinstance(error.__cause__, Exception) else error
    lines = str(origin).split("\n")
    return next((line.strip() for line in lines if line.strip()), type(origin).__name__)
