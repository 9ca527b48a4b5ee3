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
from pipeline.score.chunk import Faults, Settings, score_chunks
from pipeline.score.config import ScoreConfig
from pipeline.score.content import hash_content
from pipeline.score.decode import TokenizerFile
from pipeline.score.groups import check_columns
from pipeline.score.histogram import Histogram, write_histograms
from pipeline.score.keys import CacheKeys, make_keys
from pipeline.score.metrics import NamedMetric, parse_metrics
from pipeline.score.summary import Summary, flatten, summarize, to_json
from pipeline.score.tally import Tally
from pipeline.store.chunk import file_sha256
from pipeline.store.prediction_set import SUMS, TOKENIZER_FILE, PredictionSet, name_chunks

# Rows that one call scores, rounded up to whole chunks: small chunks share a call.
CALL_ROWS = 4096


def score(
    predictions: Path,
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
        predictions: folder of the set.
        scores: folder for scores per example and ``summary.json``; replaced as a whole.
        metrics: file for the headline scores; written last.
        config: the settings.
        plots: folder for the histograms; None for none.
        allow_partial: score the chunks that are there although some are missing.
        cache: folder in which statistics are remembered; None for nowhere.
        progress: called with a number of rows whenever so many more are done.
        worker_rows: a set with fewer rows is scored in this process whatever ``n_jobs`` says.

    Returns:
        What ``summary.json`` holds. The scores of a set without rows are null.

    Raises:
        MissingChunksError: chunks are missing, and not ``allow_partial``.
        PredictionSetError: the set or some of its chunks cannot be used; all of them are named.
        ConfigError: an unknown metric, option or backend, or groups that there cannot be.
        ScoresError: ``scores`` cannot be replaced, or ``cache`` not written.
    """
    started = time.time()
    named = parse_metrics(config.metrics)
    source = PredictionSet(predictions)
    check_columns(config.by, source.card.keep)
    if not allow_partial:
        source.require_complete()
    tokenizer = _tokenizer(source)
    with folder.replacing(scores) as output:
        settings = Settings(
            predictions=predictions,
            card=source.card,
            tokenizer=tokenizer,
            metrics=named,
            replicates=config.replicates if config.confidence else 0,
            seed=config.seed,
            output=output,
            by=config.by,
            cache=_cache_keys(cache, named, source, tokenizer),
        )
        tally, content = _score_all(source, settings, config, progress, worker_rows)
        summary = summarize(tally, named, config, source.card.rows, content)
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
    # The hash reads all chunks in order: the longest call starts first.
    calls: list[Callable[[], Tally | Faults | str | PredictionSetError]] = [
        partial(hash_content, source.folder, source.card, source.present())
    ]
    calls += [partial(score_chunks, settings, chunks) for chunks in _shares(source)]
    small = source.card.rows < worker_rows or len(calls) <= 2
    n_jobs = 1 if small and config.n_jobs != 0 else config.n_jobs
    tally = Tally(settings.metrics, settings.replicates, settings.by)
    errors: dict[int, PredictionSetError] = {}
    content: str | PredictionSetError = ""
    for result in pool.run_calls(calls, n_jobs, config.backend):
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


def _shares(source: PredictionSet) -> Iterator[dict[int, str | None]]:
    """The chunks that are there, with their hashes, a call's worth at a time."""
    share: dict[int, str | None] = {}
    rows = 0
    for chunk in source.present():
        start, stop = source.card.bounds(chunk)
        share[chunk] = source.chunk_sha256(chunk)
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


def _tokenizer(source: PredictionSet) -> TokenizerFile | None:
    if source.card.prediction == "text":
        return None
    path = source.tokenizer_file
    if not path.exists():
        raise PredictionSetError(
            f"{source.folder} holds token ids but no {TOKENIZER_FILE} to decode them with; copy "
            "the set again, or run `twophase predict` where the model is"
        )
    sha256 = file_sha256(path)
    if source.sums is not None and source.sums.get(TOKENIZER_FILE) != sha256:
        raise PredictionSetError(
            f"{path} is damaged: its sha256 is not the one in {SUMS}; copy the set again, or run "
            "`twophase predict` where the model is"
        )
    return TokenizerFile(path, sha256)


def _cache_keys(
    cache: Path | None,
    named: tuple[NamedMetric, ...],
    source: PredictionSet,
    tokenizer: TokenizerFile | None,
) -> CacheKeys | None:
    if cache is None:
        return None
    return make_keys(cache, tuple(each.metric for each in named), source.card, tokenizer)


def _histograms(named: tuple[NamedMetric, ...], tally: Tally) -> dict[str, Histogram]:
    return {
        metric.rename(name): Histogram(metric.metric.scale, rows)
        for metric, sums in zip(named, tally.metrics, strict=True)
        for name, rows in sums.histograms.items()
    }
