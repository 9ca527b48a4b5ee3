"""The keys of the cache: all that statistics depend on besides the chunk.

* Of the texts: how ids become text (decode options, tokenizer), what is done to every text, and the
  sources that do it.
* Of a metric besides: its class, options, columns and signature (which holds the versions of the
  libraries that it names), and its sources with all they import (``sources``), also those of what
  its options name as ``package.module:name``.

Nothing that stands behind the statistics is in a key: neither intervals, groups nor names. A metric
whose source is not to be found is not cached.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pipeline.score.decode import TokenizerFile
from pipeline.score.metrics.base import Metric
from pipeline.score.normalize import Step
from pipeline.score.sources import hash_sources
from pipeline.store.card import RunCard

# What turns a block of a chunk into texts, counts and calls of a metric.
_SOURCES = ("pipeline.score.texts", "pipeline.score.counts", "pipeline.score.statistics")
_METRICS = "pipeline.score.metrics"
_DOTTED = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):[^\W\d]\w*")


@dataclass(frozen=True)
class CacheKeys:
    """Where statistics are cached, and under which keys.

    Attributes:
        folder: of the cache.
        counts: key of the counts.
        references: key of the hashes of references.
        metrics: key of each metric, in their order; None where it cannot be cached.
    """

    folder: Path
    counts: str
    references: str
    metrics: tuple[str | None, ...]


def make_keys(
    folder: Path,
    metrics: tuple[Metric, ...],
    card: RunCard,
    tokenizer: TokenizerFile | None,
    normalize: Sequence[Step] = (),
) -> CacheKeys | None:
    """The keys of a run; None where nothing can be cached.

    Args:
        folder: of the cache.
        metrics: what is computed.
        card: of the set, with the decode options of this run.
        tokenizer: to decode with; None for a set of texts.
        normalize: steps that every text goes through.
    """
    sources = hash_sources(*_SOURCES, without=_METRICS)
    if sources is None:
        return None
    texts = {
        "prediction": card.prediction,
        "decode": msgspec.to_builtins(card.decode) if tokenizer is not None else None,
        "tokenizer": tokenizer.sha256 if tokenizer is not None else None,
        "normalize": msgspec.to_builtins(normalize),
        "sources": sources,
    }
    return CacheKeys(
        folder,
        counts=_digest({**texts, "of": "counts"}),
        references=_digest({**texts, "of": "references"}),
        metrics=tuple(_metric_key(metric, texts) for metric in metrics),
    )


def _metric_key(metric: Metric, texts: Mapping[str, Any]) -> str | None:
    kind = metric.kind
    options = msgspec.to_builtins(metric.options)
    sources = hash_sources(kind.__module__, *_named_modules(options))
    if sources is None:
        return None
    return _digest(
        {
            "texts": texts,
            "metric": f"{kind.__module__}.{kind.__qualname__}",
            "options": options,
            "signature": metric.signature(),
            "columns": [tuple(column) for column in metric.columns],
            "sources": sources,
        }
    )


def _named_modules(options: Any) -> list[str]:
    """Modules of what options name as ``package.module:name``."""
    if isinstance(options, Mapping):
        options = list(options.values())
    if isinstance(options, list | tuple):
        return [module for value in options for module in _named_modules(value)]
    match = _DOTTED.fullmatch(options) if isinstance(options, str) else None
    return [match[1]] if match is not None else []


def _digest(entries: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()
