"""Where the time of phase two goes, per row, and how far it is from the floor.

Each stage is called as ``pipeline.score.chunk`` and ``run`` call it, on the rows that the stage
before it left, and its processor time is taken (not by a profiler, which would weigh Python code
more than library code; not by the wall clock, which counts what else the machine does). The floor
is what no way of scoring can leave out: reading and decoding. ``--markdown`` prints the tables of
docs/scoring-speed.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import machine

# Before NumPy is imported.
os.environ.update(machine.ONE_THREAD)

from benchmarks.corpus import Corpus
from pipeline.score import chunk as stages
from pipeline.score.config import ScoreConfig
from pipeline.score.content import hash_content
from pipeline.score.decode import TokenizerFile, load_decoder
from pipeline.score.interval import intervals, weights
from pipeline.score.metrics import parse_metrics
from pipeline.score.references import hash_references
from pipeline.score.run import score
from pipeline.score.settings import make_settings
from pipeline.score.statistics import blocks
from pipeline.score.tally import Tally
from pipeline.score.texts import read_texts
from pipeline.store.prediction_set import PredictionSet

FLOOR = ("reading", "decoding")
SHAPES = {"20-word sentences": (20_000, 20), "150-word documents": (2_000, 150)}
QUICK = {"20-word sentences": (300, 20)}


class Stages:
    """Seconds per stage over all blocks of a set.

    Attributes:
        seconds: stage -> seconds, in the order in which they run.
    """

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        self._folder = folder

    def run(self) -> None:
        """Score the set, a stage at a time."""
        source = PredictionSet(self._folder)
        config = ScoreConfig()
        named = parse_metrics(config.metrics)
        tally = Tally(named, config.replicates)
        decoder = load_decoder(TokenizerFile(source.place, ""), source.card.decode)
        self._time("content hash", lambda: hash_content(source.place, source.card, source.hashes()))
        for number in source.present():
            tables = self._time("reading", lambda n=number: list(source.reader(n).tables()))
            for table in tables:
                columns = [
                    self._score(block, decoder, named, tally, config) for block in blocks(table)
                ]
                self._time("writing", lambda t=table, c=columns: self._write(source, named, t, c))
        for each, sums in zip(named, tally.metrics, strict=True):
            self._time("intervals", lambda e=each, s=sums: intervals(e.metric, s.sums, 0.95))

    def _score(self, block: Any, decoder: Any, named: Any, tally: Tally, config: Any) -> Any:
        texts = self._time("decoding", lambda: read_texts(block, str(self._folder), decoder))
        first = block.column("row")[0].as_py()
        drawn = self._time(
            "weights", lambda: weights(config.seed, first, len(block), config.replicates)
        )
        columns = []
        for each, sums in zip(named, tally.metrics, strict=True):
            statistic = self._time(
                f"{each.name} statistics",
                lambda e=each: e.metric.statistics(texts.predictions, texts.references),
            )
            examples = self._time(
                f"{each.name} per row", lambda e=each, s=statistic: e.metric.example_scores(s)
            )
            self._time("sums", lambda s=sums, v=statistic, e=examples: s.add(v, e, drawn))
            columns += [*statistic.T, *examples.values()]
        hashes = self._time("references hash", lambda: hash_references(texts.references))
        return [*columns, hashes]

    def _write(self, source: PredictionSet, named: Any, table: Any, columns: list[Any]) -> None:
        import numpy as np
        import pyarrow.parquet as pq

        joined = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
        with tempfile.TemporaryDirectory() as out:
            settings = make_settings(source, ScoreConfig(), named, Path(out), cache=None)
            schema = stages._scores_schema(settings, table.schema)
            path = Path(out) / "chunk.parquet"
            with pq.ParquetWriter(
                path, schema, compression="zstd", write_page_checksum=True
            ) as writer:
                writer.write_table(stages._scores_table(schema, table, joined))

    def _time(self, stage: str, call: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = call()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.process_time() - start
        return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        cores = os.sched_getaffinity(0)
        print(machine.describe())
        os.sched_setaffinity(0, {max(cores)})
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus("json" if arguments.quick else None)
        for title, (rows, words) in (QUICK if arguments.quick else SHAPES).items():
            path = corpus.write_set(Path(folder, str(words)), rows, words)
            _print(title, rows, *_profile(path, 1 if arguments.quick else 5), arguments.markdown)
    return 0


def _profile(folder: Path, repeats: int) -> tuple[dict[str, float], float]:
    """Median seconds per stage, and of the whole as ``run.score`` does it."""
    runs, wholes = [], []
    for _ in range(repeats + 1):
        stage = Stages(folder)
        stage.run()
        runs.append(stage.seconds)
        with tempfile.TemporaryDirectory() as out:
            start = time.process_time()
            score(folder, Path(out, "scores"), Path(out, "metrics.json"), ScoreConfig())
            wholes.append(time.process_time() - start)
    # The first turn imports libraries and fills caches.
    medians = {name: statistics.median(run[name] for run in runs[1:]) for name in runs[0]}
    return medians, statistics.median(wholes[1:])


def _print(title: str, rows: int, seconds: dict[str, float], whole: float, markdown: bool) -> None:
    floor = sum(seconds[name] for name in FLOOR)
    lines = list(seconds.items())
    lines += [("all stages", sum(seconds.values())), ("`twophase score` itself", whole)]
    print(f"\n{title}, {rows:,} rows, {rows / whole:,.0f} rows/s; floor = {' + '.join(FLOOR)}\n")
    if markdown:
        print("| stage | µs per row | times the floor |\n|:--|--:|--:|")
    for name, value in lines:
        cells = f"{value / rows * 1e6:.2f}", f"{value / floor:.2f}"
        print(
            f"| {name} | {' | '.join(cells)} |"
            if markdown
            else f"{name:24}{cells[0]:>9}{cells[1]:>8}"
        )


if __name__ == "__main__":
    sys.exit(main())
