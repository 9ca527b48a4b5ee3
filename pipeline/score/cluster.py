"""Chunks scored by the workers of a Dask cluster, through joblib's own backend.

All that a worker must see is the prediction set, on a path that it shares with this machine or at a
URL. What it computes it sends here: sums, the scores of each example as the bytes of their files,
and what the cache of statistics shall remember; a call's worth at a time is held. Chunks of which
the cache knows everything are read here and sent to nobody.

The same bits need the same code: a worker that has another Python, other libraries or other sources
is refused. Tasks of a worker that dies are done by the others, which is Dask's doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pipeline import atomic
from pipeline.errors import ClusterError, ConfigError, TwophaseError, first_line, listed
from pipeline.extras import require_extra
from pipeline.score.chunk import score_chunks
from pipeline.score.decode import TokenizerFile
from pipeline.score.settings import Settings
from pipeline.score.statistics import is_known
from pipeline.score.worker import Result, Sent, Share, environment, hash_there, score_there
from pipeline.store.place import Folder, Place

# Until the scheduler, and a first worker, have to be there.
CONNECT_S = 10
_PACKAGE = __name__.partition(".")[0]
_LACKED = "[name for name in {} if __import__('importlib.util').util.find_spec(name) is None]"


def score_on_cluster(
    settings: Settings,
    chunks: Mapping[int, str | None],
    shares: Sequence[Share],
    scheduler: str | None,
) -> Iterator[Result]:
    """What ``pool.run_calls`` yields for ``hash_content`` and ``score_chunks``.

    Args:
        settings: of the run.
        chunks: of the set, with their sha256 where known.
        shares: they, a call's worth at a time.
        scheduler: address of Dask's scheduler.

    Raises:
        ConfigError: no scheduler is named.
        MissingExtraError: ``distributed`` is not installed.
        ClusterError: the scheduler cannot be reached, or its workers cannot score.
    """
    if scheduler is None:
        raise ConfigError(
            "score.backend: dask needs score.scheduler, the address that `dask scheduler` prints, "
            "such as tcp://host:8786"
        )
    with _connected(scheduler) as client:
        theirs = _for_workers(settings)
        needed = environment(settings.metrics)
        known = [share for share in shares if _is_known(settings, share)]
        # The hash reads all chunks in order: the longest call starts first.
        calls: list[Callable[[], Sent]] = [partial(hash_there, theirs, dict(chunks), needed)]
        calls += [
            partial(score_there, theirs, share, needed) for share in shares if share not in known
        ]
        for share in known:
            yield score_chunks(settings, share)
        for sent in _run(calls, client, scheduler, _packages(settings)):
            _keep(sent.scores, settings.output)
            if settings.cache is not None:
                _keep(sent.cache, settings.cache.folder)
            yield sent.result


def _for_workers(settings: Settings) -> Settings:
    place = _as_workers_see(settings.place)
    tokenizer = settings.tokenizer
    if tokenizer is not None:
        tokenizer = TokenizerFile(place, tokenizer.sha256)
    return replace(settings, place=place, tokenizer=tokenizer)


def _as_workers_see(place: Place) -> Place:
    """``place`` from another working directory, without copies in a folder of this machine."""
    return Folder(place.path.absolute()) if isinstance(place, Folder) else place.keeping(None)


def _is_known(settings: Settings, share: Share) -> bool:
    return all(is_known(settings, sha256) for sha256 in share.values())


def _keep(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = atomic.temporary_path(path)
        temporary.write_bytes(content)
        temporary.replace(path)


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    require_extra("score.backend: dask", "dask", ["distributed"])
    from distributed import Client

    try:
        client = Client(scheduler, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"the scheduler {scheduler} (score.scheduler) cannot be reached: {first_line(error)}; "
            "start it with `dask scheduler`, and workers with `dask worker`, or use "
            "score.backend: loky"
        ) from None
    try:
        yield client
    finally:
        client.close(timeout=1)


def _packages(settings: Settings) -> list[str]:
    """Packages and modules without which a call cannot be read there: ours, and a person's own."""
    modules = [__name__, *(named.metric.kind.__module__ for named in settings.metrics)]
    return sorted({module.partition(".")[0] for module in modules})


def _run(
    calls: Sequence[Callable[[], Sent]], client: Any, scheduler: str, packages: Sequence[str]
) -> Iterator[Sent]:
    import joblib

    from pipeline.score.dask_backend import DaskBackend

    tasks = [joblib.delayed(call)() for call in calls]
    try:
        _require_packages(client, packages)
        backend = DaskBackend(client=client, wait_for_workers_timeout=CONNECT_S)
        with joblib.parallel_config(backend):
            results = joblib.Parallel(-1, return_as="generator_unordered")(tasks)
        yield from results
    except TwophaseError:
        raise
    except Exception as error:  # of distributed, joblib or the network, in no common class
        raise ClusterError(
            f"the cluster of {scheduler} failed: {type(error).__name__}: {first_line(error)}; see "
            "that scheduler and workers run, and score again: the scores that were there are "
            "untouched"
        ) from error


def _require_packages(client: Any, packages: Sequence[str]) -> None:
    """Refuse a scheduler or workers that cannot even read what they are to do: they would die.

    Raises:
        ClusterError: names those without ours, or without a module of a person's metric.
    """
    lacked = _LACKED.format(list(packages))
    found = {"the scheduler": client.run_on_scheduler(eval, lacked), **client.run(eval, lacked)}
    lacking = sorted(who for who, names in found.items() if _PACKAGE in names)
    if lacking:
        raise ClusterError(
            f"twophase is not installed where the cluster runs ({listed(lacking, 3)}): pip install "
            "-c constraints.txt '.[dask]' there, as here, and start it again"
        )
    lacking = sorted(who for who, names in found.items() if names)
    if lacking:
        names = listed(sorted({name for names in found.values() for name in names}), 3)
        raise ClusterError(
            f"the module {names} of score.metrics is not found where the cluster runs "
            f"({listed(lacking, 3)}): the same file must be on the PYTHONPATH of scheduler and "
            "workers; put it there and start them again"
        )
