"""A model of the hub, downloaded into the hub's own cache and linked from there.

The cache resumes a download that was cut, holds one copy for all projects, and serves a machine
that is offline. The links are hard ones (copies where they cannot be made): files in the cache are
named by their content and never change, and the model stays when the cache is cleaned.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import ModelError
from pipeline.fetch.files import check_model, model_files
from pipeline.hub import cause, is_http_error, quiet

_TEXTS = ("*.json", "*.txt", "*.model", "*.jinja", "*.spm", "*.bpe", "*.tiktoken", "*.py")
_SAFETENSORS = ("model.safetensors", "model-*-of-*.safetensors")
_BIN = ("pytorch_model.bin", "pytorch_model-*-of-*.bin")
_FOLDERS = "*/*"  # ONNX, OpenVINO and the like


def download_model(model: str, revision: str | None, into: Path, progress: bool) -> str:
    """Download ``model`` at ``revision`` into the empty folder ``into``; return its commit.

    Configuration, tokenizer and safetensors; ``*.bin`` only where there are no safetensors.

    Args:
        model: the hub id.
        revision: branch, tag or commit; None is the default branch.
        into: an empty folder.
        progress: let the hub's library draw its bars on stderr.

    Raises:
        ModelError: not found, not allowed, no network, or no configuration, tokenizer or weights.
    """
    snapshot = download_snapshot(model, revision, progress)
    for name in model_files(path.name for path in snapshot.iterdir() if path.is_file()):
        blob = os.path.realpath(snapshot / name)
        try:
            os.link(blob, into / name)
        except OSError:  # another device, or a file system without hard links
            shutil.copy2(blob, into / name)
    return snapshot.name  # the cache names a snapshot by its commit


def download_snapshot(model: str, revision: str | None, progress: bool) -> Path:
    """The folder in the hub's cache that holds ``model``; see ``download_model``."""
    snapshot = _snapshot(model, revision, [*_TEXTS, *_SAFETENSORS], progress)
    if not any(snapshot.glob("model*.safetensors")):
        snapshot = _snapshot(model, revision, [*_TEXTS, *_BIN], progress)
    check_model(snapshot, where=f"the hub's {model}")
    return snapshot


def download_files(model: str, patterns: list[str], key: str) -> Path:
    """The folder in the hub's cache that holds those files of ``model`` that ``patterns`` name.

    Args:
        model: the hub id.
        patterns: names of files.
        key: the parameter that names the model, for messages.

    Raises:
        ModelError: not found, not allowed, or no network.
    """
    return _snapshot(model, None, patterns, progress=False, key=key)


def _snapshot(
    model: str,
    revision: str | None,
    patterns: list[str],
    progress: bool,
    key: str = "fetch.model",
) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    at = "" if revision is None else f" at revision {revision}"
    try:
        with quiet(), _bars(progress):
            return Path(
                snapshot_download(
                    model, revision=revision, allow_patterns=patterns, ignore_patterns=_FOLDERS
                )
            )
    except HFValidationError:
        raise ModelError(
            f"{key}: '{model}' is neither a folder here nor a hub id (owner/name)"
        ) from None
    except GatedRepoError:
        raise ModelError(
            f"the hub's {model} is gated: accept its terms on its page there, then log in with "
            "`hf auth login` or set HF_TOKEN"
        ) from None
    except RepositoryNotFoundError:
        raise ModelError(
            f"{key}: there is no folder {model} here and no model {model} on the hub that "
            "you may read; check the name, or log in with `hf auth login` if it is private"
        ) from None
    except RevisionNotFoundError:
        raise ModelError(
            f"fetch.revision: the hub's {model} has no branch, tag or commit '{revision}'"
        ) from None
    except LocalEntryNotFoundError as error:
        raise ModelError(
            f"the hub's {model}{at} is not in the local cache and the hub cannot be reached "
            f"({cause(error)}); go online, or name a local folder in {key}"
        ) from None
    except Exception as error:
        if not is_http_error(error):
            raise
        raise ModelError(
            f"the hub's {model}{at} could not be downloaded ({cause(error)}); try again: what "
            "has arrived is kept"
        ) from None


@contextmanager
def _bars(wanted: bool) -> Iterator[None]:
    from huggingface_hub.utils import (  # type: ignore[attr-defined]  # public, not in __all__
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if wanted or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
