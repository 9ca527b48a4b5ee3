"""The measurements behind ``benchmarks.score``, each in a process of its own.

A check prints one line of JSON: ``value`` (null: not measured) and ``detail``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.processes import command_line, peak_memory
from pipeline.score.config import ScoreConfig
from pipeline.score.decode import TokenizerFile, load_decoder
from pipeline.score.interval import BLOCK_ROWS, intervals, weights
from pipeline.score.metrics import METRICS, NamedMetric, parse_metrics
from pipeline.score.run import score
from pipeline.score.tally import MetricTally
from pipeline.score.texts import Texts, read_texts
from pipeline.store.prediction_set import PredictionSet

TYPES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]


def against_libraries(folder: Path, repeats: int) -> dict[str, Any]:
    """What ``compute_metrics`` does, against ``score`` with intervals and a score per row.

    The libraries decode predictions alone, from memory: reading, and decoding labels, is left out.
    """
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics.bleu import BLEU
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    path = str(PredictionSet(folder).tokenizer_file)
    with tempfile.TemporaryDirectory() as saved:
        PreTrainedTokenizerFast(tokenizer_file=path).save_pretrained(saved)
        tokenizer = AutoTokenizer.from_pretrained(saved)
    tables = list(_tables(folder))
    ids = [row for table in tables for row in table.column("prediction_ids").to_pylist()]
    references = [row[0] for table in tables for row in table.column("references").to_pylist()]

    def theirs() -> dict[str, float]:
        predictions = tokenizer.batch_decode(ids, skip_special_tokens=True)
        scorer = RougeScorer(TYPES)
        rows = [scorer.score(*pair) for pair in zip(references, predictions, strict=True)]
        means = {kind: math.fsum(row[kind].fmeasure for row in rows) / len(rows) for kind in TYPES}
        return {**means, "bleu": BLEU().corpus_score(predictions, [references]).score}

    times, results = _in_turns({"theirs": theirs, "ours": partial(_score, folder)}, repeats)
    ours = results["ours"]
    found = {kind: ours["rouge"]["scores"][kind]["value"] for kind in TYPES}
    found["bleu"] = ours["bleu"]["scores"]["bleu"]["value"]
    if found != results["theirs"]:
        sys.exit(f"the scores differ: {found} and {results['theirs']}")
    return _ratio(times["theirs"], times["ours"], len(ids))


def chrf(folder: Path, repeats: int) -> dict[str, Any]:
    """chrF++ of texts in memory, against sacreBLEU's."""
    if "chrf" not in METRICS:
        return {"value": None, "detail": "since this version has no metric chrf"}
    from sacrebleu.metrics.chrf import CHRF

    (named,) = parse_metrics([{"chrf": {"word_order": 2}}])
    texts = _texts(folder)
    predictions = [text for block in texts for text in block.predictions]
    references = [row for block in texts for row in block.references]
    streams = [[row[0] for row in references]]

    def ours() -> float | None:
        totals = named.metric.statistics(predictions, references).sum(axis=0).tolist()
        return named.metric.scores(totals)[named.metric.headline[0]]

    def theirs() -> float:
        return float(CHRF(word_order=2).corpus_score(predictions, streams).score)

    times, results = _in_turns({"theirs": theirs, "ours": ours}, repeats)
    if results["ours"] != results["theirs"]:
        sys.exit(f"the scores differ: {results}")
    return _ratio(times["theirs"], times["ours"], len(predictions))


def two_workers(folder: Path, repeats: int) -> dict[str, Any]:
    """``score`` with one worker against two, which joblib keeps from one call to the next."""
    from benchmarks.machine import cores

    if cores() < 2:
        return {"value": None, "detail": "since there is one core"}
    start = time.perf_counter()
    _score(folder, n_jobs=2)
    first = time.perf_counter() - start
    calls = {"theirs": partial(_score, folder), "ours": partial(_score, folder, n_jobs=2)}
    times, results = _in_turns(calls, repeats, time.perf_counter)
    if results["ours"] != results["theirs"]:
        sys.exit("the scores differ")
    found = _ratio(times["theirs"], times["ours"], PredictionSet(folder).card.rows)
    found["detail"] += f"; {times['theirs'] / first:.2f} x where the workers start first"
    return found


def bootstrap(folder: Path, repeats: int) -> dict[str, Any]:
    """Seconds that intervals add: weights, weighted sums, and the scores of 1,000 replicates."""
    named = parse_metrics(ScoreConfig().metrics)
    blocks = [
        [metric.metric.statistics(texts.predictions, texts.references) for metric in named]
        for texts in _texts(folder)
    ]
    rows = sum(len(block[0]) for block in blocks)
    times, _ = _in_turns({"ours": partial(_bootstrap, named, blocks)}, repeats)
    return {"value": times["ours"], "detail": f"{rows} rows, default metrics"}


def _bootstrap(named: tuple[NamedMetric, ...], blocks: list[list[Any]]) -> None:
    tallies = [MetricTally(metric, 1000) for metric in named]
    start = 0
    for block in blocks:
        drawn = weights(0, start, len(block[0]), 1000)
        start += len(block[0])
        for tally, statistic in zip(tallies, block, strict=True):
            tally.add(statistic, {}, drawn)
    for metric, tally in zip(named, tallies, strict=True):
        intervals(metric.metric, tally.sums, 0.95)


def _in_turns(
    calls: dict[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.process_time,
) -> tuple[dict[str, float], dict[str, Any]]:
    """Median seconds of each call, one after the other, ``repeats`` times; and its result.

    On one core the processor's time is what an idle machine would take; that of other processes is
    not in it.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    results = {}
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            results[name] = call()
            times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}, results


def _ratio(theirs: float, ours: float, rows: int) -> dict[str, Any]:
    detail = f"{rows / ours:,.0f} rows/s against {rows / theirs:,.0f}"
    return {"value": theirs / ours, "detail": detail}


def _score(folder: Path, n_jobs: int = 1) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as out:
        config = ScoreConfig(n_jobs=n_jobs)
        target = Path(out)
        summary = score(folder, target / "scores", target / "metrics.json", config, worker_rows=0)
    metrics: dict[str, Any] = summary["metrics"]
    return metrics


def _tables(folder: Path) -> Any:
    source = PredictionSet(folder)
    for chunk in source.present():
        yield from source.reader(chunk).tables()


def _texts(folder: Path) -> list[Texts]:
    """The texts of a set, a block of the bootstrap at a time."""
    source = PredictionSet(folder)
    decoder = load_decoder(TokenizerFile(source.place, ""), source.card.decode)
    whole = [read_texts(table, str(folder), decoder) for table in _tables(folder)]
    predictions = [text for texts in whole for text in texts.predictions]
    references = [row for texts in whole for row in texts.references]
    return [
        Texts(predictions[start : start + BLOCK_ROWS], references[start : start + BLOCK_ROWS])
        for start in range(0, len(predictions), BLOCK_ROWS)
    ]


CHECKS = {
    check.__name__: check
    for check in (against_libraries, chrf, two_workers, peak_memory, command_line, bootstrap)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("check", choices=CHECKS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("repeats", type=int)
    parser.add_argument("--one-core", action="store_true")
    arguments = parser.parse_args()
    if arguments.one_core and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    found = CHECKS[arguments.check](arguments.folder, arguments.repeats)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
