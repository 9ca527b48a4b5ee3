"""What a worker of a cluster does: see that it can, compute, and send what came of it.

It writes into a folder of its own and sends the bytes, so that nothing but the prediction set has
to be shared.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipeline.errors import ClusterError, PredictionSetError
from pipeline.score.chunk import Faults, score_chunks
from pipeline.score.content import hash_content
from pipeline.score.metrics import NamedMetric
from pipeline.score.settings import Settings
from pipeline.score.sources import hash_sources
from pipeline.score.tally import Tally
from pipeline.store.card import RUN_CARD
from pipeline.store.place import Folder

_LIBRARIES = (
    "jiwer",
    "numpy",
    "pyarrow",
    "rapidfuzz",
    "regex",
    "rouge-score",
    "rouge-score-rs",
    "sacrebleu",
    "tokenizers",
)
_SOURCES = "twophase's sources"

Result = Tally | Faults | str | PredictionSetError
Share = dict[int, str | None]
Environment = dict[str, str | None]


@dataclass(frozen=True)
class Sent:
    """What comes back from a worker.

    Attributes:
        result: of the call.
        scores: file name -> bytes, for the folder of scores.
        cache: the same, for the cache.
    """

    result: Result
    scores: dict[str, bytes]
    cache: dict[str, bytes]


def environment(metrics: Sequence[NamedMetric]) -> Environment:
    """What must be the same wherever ``metrics`` are computed, by name."""
    return _environment(tuple(sorted({named.metric.kind.__module__ for named in metrics})))


@lru_cache(maxsize=8)
def _environment(modules: tuple[str, ...]) -> Environment:
    found: Environment = {"Python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    found[_SOURCES] = hash_sources("pipeline.score.chunk", *modules)
    return found


def hash_there(settings: Settings, chunks: Share, needed: Environment) -> Sent:
    """``hash_content``, on a worker that has what is ``needed``."""
    _require_able(settings, needed)
    return Sent(hash_content(settings.place, settings.card, chunks), {}, {})


def score_there(settings: Settings, share: Share, needed: Environment) -> Sent:
    """``score_chunks``, on a worker that has what is ``needed``."""
    _require_able(settings, needed)
    with tempfile.TemporaryDirectory(prefix="twophase-score-") as scratch:
        scores, cache = Path(scratch, "scores"), Path(scratch, "cache")
        scores.mkdir()
        keys = replace(settings.cache, folder=cache) if settings.cache is not None else None
        result = score_chunks(replace(settings, output=scores, cache=keys), share)
        return Sent(result, _files_of(scores), _files_of(cache))


def _require_able(settings: Settings, needed: Environment) -> None:
    """Refuse to score here where that would give other bits, or nothing.

    Raises:
        ClusterError: names this worker, and what it lacks.
    """
    here = environment(settings.metrics)
    differing = [name for name in needed if needed[name] not in (None, here[name])]
    if differing:
        said = [
            name if name == _SOURCES else f"{name} {here[name] or 'none'}, not {needed[name]}"
            for name in differing
        ]
        raise ClusterError(
            f"the worker {_address()} has other code, which may give other scores "
            f"({'; '.join(said)}): install the same there (pip install -c constraints.txt "
            "'.[dask]') and start it again"
        )
    place = settings.place
    if isinstance(place, Folder) and not (place.path / RUN_CARD).is_file():
        raise ClusterError(
            f"the worker {_address()} does not see {place}: put the set on a path that all "
            "workers share, or name a URL with --predictions"
        )


def _address() -> str:
    from distributed import get_worker

    address: str = get_worker().address
    return f"{address} on {platform.node()}"


def _files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
