"""The ``fetch`` section of params.yaml."""

from __future__ import annotations

from pipeline.config import Config


class FetchConfig(Config, frozen=True):
    """Which model is made local.

    Attributes:
        model: a hub id or a local folder; None is the embedded default. What exists on this
            machine goes before a hub id.
        revision: branch, tag or commit on the hub; None is the default branch. An error for what
            is not of the hub.
    """

    model: str | None = None
    revision: str | None = None
