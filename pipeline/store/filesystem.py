"""What reads a URL: a file system of fsspec, and its errors in one class.

The libraries under fsspec (botocore, aiohttp, paramiko …) share no class of errors. Credentials are
theirs to find (``AWS_…``, fsspec's own configuration), and so are retries.
"""

from __future__ import annotations

import errno
import importlib
import re
from functools import lru_cache
from typing import Any

from pipeline.errors import ConfigError, MissingExtraError, ObjectStoreError, first_line
from pipeline.extras import require_extra

S3 = ("s3", "s3a")
_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]+@")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def without_password(url: str) -> str:
    """``sftp://user:***@host/set`` for a URL with a password, and any other as it is."""
    return _PASSWORD.sub(r"\1:***@", url)


@lru_cache(maxsize=16)
def open_filesystem(url: str) -> tuple[Any, str]:
    """The file system behind ``url``, and what it calls it."""
    protocol = url.partition(":")[0]
    needed = ["fsspec", "s3fs"] if protocol in S3 else ["fsspec"]
    require_extra(f"{protocol}://", "s3", needed)
    # By its name, so that the cache of statistics does not depend on its version: see ``sources``.
    core = importlib.import_module("fsspec.core")
    try:
        files, root = core.url_to_fs(url)
    except ImportError as error:
        raise MissingExtraError(
            f"{without_password(url)}: what fsspec reads {protocol}:// with is not installed "
            f"({first_line(error)}); install it with pip"
        ) from None
    except ValueError as error:
        raise ConfigError(
            f"{without_password(url)} is not a URL that can be used: {first_line(error)}; "
            "s3://bucket/run is one"
        ) from None
    except Exception as error:  # some ask their store at once
        raise failed(url, "opened", error) from error
    return files, str(root).rstrip("/")


def failed(url: str, what: str, error: Exception) -> ObjectStoreError:
    """The error to raise where ``url`` cannot be opened, listed, read or written (``what``)."""
    said = first_line(error)
    password = _PASSWORD.search(url)
    if password is not None:
        said = said.replace(password[0], f"{password[1]}:***@")
    return ObjectStoreError(
        f"{without_password(url)} cannot be {what}: {type(error).__name__}: {said}; check the "
        "address, the network and the credentials (for s3:// AWS_ACCESS_KEY_ID, "
        "AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL, or a profile); what was complete "
        "before is kept: run the same command again"
    )


def is_of_this_machine(error: BaseException) -> bool:
    """Whether it is about a file here (a full disk), and not about the store."""
    return isinstance(error, OSError) and error.__cause__ is None and error.errno in _NO_ROOM


def error_code(error: BaseException) -> str | None:
    """What S3 calls the error."""
    response = getattr(error.__cause__, "response", None) or {}
    code: str | None = response.get("Error", {}).get("Code")
    return code
