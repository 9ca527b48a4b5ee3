"""Phase two from end to end: a prediction set → ``scores/``, histograms, ``metrics.json``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pipeline import atomic
from pipeline.errors import PredictionSetError
from pipeline.score import folder, pool
from pipeline.score.cache import Cache
from pipeline.score.chunk import Faults, score_chunks
from pipeline.score.columns import require_columns
from pipeline.score.config import ScoreConfig
from pipeline.score.content import hash_content
from pipeline.score.histogram import Histogram, write_histograms
from pipeline.score.metrics import NamedMetric, parse_metrics
from pipeline.score.modules import compute_modules, parse_modules
from pipeline.score.settings import Settings, make_settings
from pipeline.score.summary import Summary, flatten, summarize, to_json
from pipeline.score.tally import Tally
from pipeline.store.place import Where, open_place
from pipeline.store.prediction_set import PredictionSet, name_chunks

# Rows that one call scores, rounded up to whole chunks: small chunks share a call.
CALL_ROWS = 4096


def score(
    predictions: Where,
    scores: Path,
    metrics: Path,
    config: ScoreConfig,
    *,
    plots: Path | None = None,
    allow_partial: bool = False,
    cache: Path | None = None,
    progress: Callable[[int], object] | None = None,
    worker_rows: int = pool.WORKER_ROWS,
) -> Summary:
    """Score the prediction set in ``predictions``.

    Args:
        predictions: folder or URL of the set.
        scores: folder for scores per example and ``summary.json``; replaced as a whole.
        metrics: file for the headline scores; written last.
        config: the settings.
        plots: folder for the histograms; None for none.
        allow_partial: score the chunks that are there although some are missing.
        cache: folder in which statistics are remembered, and chunks of a set at a URL; None for
            nowhere.
        progress: called with a number of rows whenever so many more are done.
        worker_rows: a set with fewer rows is scored in this process whatever ``n_jobs`` says.

    Returns:
        What ``summary.json`` holds. The scores of a set without rows are null.

    Raises:
        MissingChunksError: chunks are missing, and not ``allow_partial``.
        PredictionSetError: the set or some of its chunks cannot be used; all of them are named.
        ConfigError: an unknown metric, option or backend, or settings that do not fit the set.
        ScoresError: ``scores`` cannot be replaced, or ``cache`` not written.
    """
    started = time.time()
    named = parse_metrics(config.metrics)
    modules = parse_modules(config.metrics)
    source = PredictionSet(open_place(predictions).keeping(cache))
    if not allow_partial:
        source.require_complete()
    require_columns(named, source.card)
    # Before anything is replaced: scores and metrics.json must not come to disagree.
    for path in (metrics, *((plots / "scores.csv",) if plots is not None else ())):
        atomic.require_writable(path)
    with folder.replacing(scores) as output:
        settings = make_settings(source, config, named, output, cache)
        tally, content = _score_all(source, settings, config, progress, worker_rows)
        results = compute_modules(modules, settings, source, config.seed)
        summary = summarize(tally, named, config, source.card.rows, content, results)
        atomic.write_text(output / folder.SUMMARY, to_json(summary))
    if plots is not None:
        write_histograms(plots, _histograms(named, tally))
    atomic.write_text(metrics, to_json(flatten(summary)))
    if cache is not None:
        Cache(cache).prune(started)
    return summary


def _score_all(
    source: PredictionSet,
    settings: Settings,
    config: ScoreConfig,
    progress: Callable[[int], object] | None,
    worker_rows: int,
) -> tuple[Tally, str]:
    """The tally of all chunks that are there, and the hash of their content."""
    tally = Tally(settings.metrics, settings.replicates, settings.by)
    errors: dict[int, PredictionSetError] = {}
    content: str | PredictionSetError = ""
    for result in _results(source, settings, config, worker_rows):
        if isinstance(result, Tally):
            tally.merge(result)
            if progress is not None:
                progress(result.rows)
        elif isinstance(result, Faults):
            errors |= result.errors
        else:
            content = result
    if errors:
        raise _first_of(errors)
    if isinstance(content, PredictionSetError):
        raise content
    return tally, content


def _results(
    source: PredictionSet, settings: Settings, config: ScoreConfig, worker_rows: int
) -> Iterator[Tally | Faults | str | PredictionSetError]:
    """What came of the chunks, in any order, and the hash of their content."""
    shares = list(_shares(source))
    if config.backend == "dask":
        from pipeline.score.cluster import score_on_cluster

        yield from score_on_cluster(settings, source.hashes(), shares, config.scheduler)
        return
    # The hash reads all chunks in order: the longest call starts first.
    calls: list[Callable[[], Tally | Faults | str | PredictionSetError]] = [
        partial(hash_content, source.place, settings.card, source.hashes())
    ]
    calls += [partial(score_chunks, settings, share) for share in shares]
    small = source.card.rows < worker_rows or len(calls) <= 2
    n_jobs = 1 if small and config.n_jobs != 0 else config.n_jobs
    yield from pool.run_calls(calls, n_jobs, config.backend)


def _shares(source: PredictionSet) -> Iterator[dict[int, str | None]]:
    """The chunks that are there, with their hashes, a call's worth at a time."""
    share: dict[int, str | None] = {}
    rows = 0
    for chunk, sha256 in source.hashes().items():
        start, stop = source.card.bounds(chunk)
        share[chunk] = sha256
        rows += stop - start
        if rows >= CALL_ROWS:
            yield share
            share, rows = {}, 0
    if share:
        yield share


def _first_of(errors: dict[int, PredictionSetError]) -> PredictionSetError:
    first, *others = sorted(errors)
    error = errors[first]
    if not others:
        return error
    return type(error)(f"{error} (and there is a fault in {name_chunks(others)})")


def _histograms(named: tuple[NamedMetric, ...], tally: Tally) -> dict[str, Histogram]:
    return {
        metric.rename(name): Histogram(metric.metric.scale, rows)
        for metric, sums in zip(named, tally.metrics, strict=True)
        for name, rows in sums.histograms.items()
    }
