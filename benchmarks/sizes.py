"""Bytes: of a prediction set, of what score writes, and of what DVC moves between two machines.

Rows are words of the standard library's documentation (``corpus``); predictions are about 45
tokens. ``--quick`` is a smoke test on few rows, where what every file costs hides what a row costs.
The tables are those of docs/deployment.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import machine
from benchmarks.corpus import Corpus
from benchmarks.traffic import measure_traffic
from pipeline.schema import chunk_schema
from pipeline.score.config import ScoreConfig
from pipeline.score.run import score
from pipeline.store.card import RUN_CARD, RunCard
from pipeline.store.chunk import chunk_name, file_sha256, write_chunk
from pipeline.store.prediction_set import SUMS, TOKENIZER_FILE, PredictionSet, format_sums

SENTENCE_WORDS = 29  # 45 tokens of the corpus' tokenizer
DOCUMENT_WORDS = 150
CHUNK_ROWS = (32, 100, 1000)


@dataclass(frozen=True)
class Rows:
    """The same rows as ids and as text, with two kinds of references.

    Attributes:
        ids: token ids of each prediction, with the end-of-text token.
        texts: the same predictions, decoded.
        references: name of a kind -> a text per row.
        tokenizer: the file that decoding needs.
    """

    ids: list[list[int]]
    texts: list[str]
    references: dict[str, list[str]]
    tokenizer: Path

    @classmethod
    def make(cls, corpus: Corpus, place: Path, rows: int) -> Rows:
        """Rows in which a reference document has nothing to do with the prediction."""
        sets = {
            "sentence": corpus.write_set(place / "sentences", rows, SENTENCE_WORDS),
            "document": corpus.write_set(place / "documents", rows, DOCUMENT_WORDS, seed=1),
        }
        ids = _column(sets["sentence"], "prediction_ids")
        return cls(
            ids,
            corpus.tokenizer.decode_batch(ids),
            {name: [row[0] for row in _column(path, "references")] for name, path in sets.items()},
            sets["sentence"] / TOKENIZER_FILE,
        )

    @property
    def tokens(self) -> float:
        """Mean tokens of a prediction."""
        return sum(map(len, self.ids)) / len(self.ids)

    def write(self, folder: Path, references: str, chunk_rows: int, *, text: bool = False) -> Path:
        """Write a sealed prediction set of these rows."""
        folder.mkdir(parents=True)
        card = RunCard.plan(
            inputs={"references": references, "text": text, "chunk_rows": chunk_rows},
            rows=len(self.ids),
            chunk_rows=chunk_rows,
            versions={},
            prediction="text" if text else "ids",
        )
        card.write(folder)
        names = [RUN_CARD]
        if not text:
            (folder / TOKENIZER_FILE).parent.mkdir()
            (folder / TOKENIZER_FILE).write_bytes(self.tokenizer.read_bytes())
            names.append(TOKENIZER_FILE)
        for chunk in range(card.chunks):
            first, stop = card.bounds(chunk)
            size = stop - first
            predictions = self.texts[first:stop] if text else self.ids[first:stop]
            columns = {
                "row": list(range(first, stop)),
                "id": [f"row-{row}" for row in range(first, stop)],
                "prediction" if text else "prediction_ids": predictions,
                "references": [[one] for one in self.references[references][first:stop]],
                "finish_reason": pa.array(["eos"] * size).dictionary_encode(),
                "prompt_tokens": [100 + row % 50 for row in range(first, stop)],
                "truncated": [False] * size,
                "batch_rows": [16] * size,
            }
            table = pa.table(columns, schema=chunk_schema(text=text))
            write_chunk(folder / chunk_name(chunk), table, card, chunk)
            names.append(chunk_name(chunk))
        sums = {name: file_sha256(folder / name) for name in names}
        (folder / SUMS).write_text(format_sums(sums))
        return folder


def _column(folder: Path, name: str) -> list:  # type: ignore[type-arg]
    paths = sorted(folder.glob("chunk-*.parquet"))
    return [value for path in paths for value in pq.ParquetFile(path).read([name])[0].to_pylist()]


def size_bytes(*paths: Path) -> int:
    """Bytes of files, and of all files in folders."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return sum(file.stat().st_size for file in files if file.is_file())


def column_bytes(folder: Path) -> dict[str, int]:
    """Compressed bytes of each column over all chunks of a set; the rest is under ``footers``."""
    sizes: dict[str, int] = {}
    paths = sorted(folder.glob("chunk-*.parquet"))
    for path in paths:
        metadata = pq.ParquetFile(path).metadata
        for group in range(metadata.num_row_groups):
            for place in range(metadata.num_columns):
                column = metadata.row_group(group).column(place)
                name = column.path_in_schema.partition(".")[0]
                sizes[name] = sizes.get(name, 0) + column.total_compressed_size
    sizes["footers"] = size_bytes(*paths) - sum(sizes.values())
    return sizes


def measure_sets(rows: Rows, place: Path) -> list[tuple[str, float]]:
    """Bytes per row of prediction sets: what is stored, with which references, in which chunks."""
    count = len(rows.ids)
    lines = []
    for text in (False, True):
        for references in rows.references:
            name = f"{'text' if text else 'token ids'}, {references} as reference"
            folder = rows.write(place / f"{text}-{references}", references, 1000, text=text)
            chunks = size_bytes(*folder.glob("chunk-*.parquet"))
            lines.append((name, chunks / count))
            if not text and references == "sentence":
                kinds = column_bytes(folder)
                for column in ("prediction_ids", "references", "id"):
                    lines.append((f"of these, `{column}`", kinds[column] / count))
    for chunk_rows in CHUNK_ROWS[:-1]:
        folder = rows.write(place / f"by-{chunk_rows}", "sentence", chunk_rows)
        chunks = size_bytes(*folder.glob("chunk-*.parquet"))
        name = f"token ids, sentence as reference, chunks of {chunk_rows} rows"
        lines.append((name, chunks / count))
    return lines


def measure_scores(predictions: Path, place: Path) -> list[tuple[str, float]]:
    """Bytes per row of what score writes with the default metrics."""
    count = PredictionSet(predictions).card.rows
    folders = {name: place / name for name in ("scores", "plots", "cache")}
    score(
        predictions,
        folders["scores"],
        place / "metrics.json",
        ScoreConfig(),
        plots=folders["plots"],
        cache=folders["cache"],
    )
    return [
        ("`data/scores`", size_bytes(folders["scores"]) / count),
        ("`data/.cache` (statistics)", size_bytes(folders["cache"]) / count),
        ("`data/plots` and `metrics.json`", size_bytes(folders["plots"], place / "metrics.json")),
    ]


def print_table(title: str, heading: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """A Markdown table under its title."""
    print(f"\n**{title}**\n\n| {' | '.join(heading)} |\n|:--|{'--:|' * (len(heading) - 1)}")
    for line in lines:
        print(f"| {' | '.join(line)} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows")
    arguments = parser.parse_args()
    count = 300 if arguments.quick else 20_000
    print(machine.describe())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = Rows.make(Corpus("json" if arguments.quick else None), place / "corpus", count)
        sets = measure_sets(rows, place / "sets")
        predictions = place / "sets/False-sentence"
        others = measure_scores(predictions, place)
        fixed = size_bytes(predictions / TOKENIZER_FILE)
        print(f"{count:,} rows, {rows.tokens:.1f} tokens per prediction; tokenizer {fixed:,} bytes")
        print_table(
            "A prediction set, in chunks of 1,000 rows",
            ("what is stored", "bytes per row"),
            [(name, f"{value:.0f}") for name, value in sets],
        )
        print_table(
            "What score writes, with ROUGE and BLEU",
            ("what", "bytes per row"),
            [
                (name, f"{value:.0f}" if name != others[-1][0] else f"{value:,.0f} bytes in all")
                for name, value in others
            ],
        )
        print_table(
            "What DVC moves",
            ("step", "bytes per row", "objects"),
            [
                (step, f"{moved / count:.0f}", f"{objects:,}")
                for step, moved, objects in measure_traffic(predictions, place / "traffic")
            ],
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
