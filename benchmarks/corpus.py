"""Prediction sets of any size: words of the standard library's documentation, resampled.

A reference is a run of words out of all docstrings, one after the other; its prediction has three
of ten words replaced by words from elsewhere. The same on every run of one Python version.
"""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from pipeline.prepare.docstrings import open_docstrings
from pipeline.schema import chunk_schema
from pipeline.store.card import RUN_CARD, RunCard
from pipeline.store.chunk import chunk_name, file_sha256, write_chunk
from pipeline.store.prediction_set import SUMS, TOKENIZER_FILE, format_sums

EOS = "<|end|>"
CHUNK_ROWS = 4096
# Larger sets repeat these; nothing in scoring remembers a row that long.
DISTINCT_ROWS = 12 * CHUNK_ROWS
_LINE_WORDS = 15
_REPLACED = 0.3


class Corpus:
    """All words, and a byte-level BPE tokenizer that was trained on them.

    Args:
        package: of the standard library, to read less; None is all of it.
    """

    def __init__(self, package: str | None = None) -> None:
        folder = Path(sysconfig.get_path("stdlib"), package) if package else None
        (table,) = open_docstrings(folder).iterate(["document", "summary"])
        texts = [text for column in table.columns for text in column.to_pylist()]
        self.words = [word for text in texts for word in text.split()]
        self.tokenizer = Tokenizer(models.BPE())
        self.tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=8000,
            special_tokens=[EOS],
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
        self.tokenizer.train_from_iterator(texts, trainer)
        self._ids: dict[str, list[int]] = {}

    def write_set(self, folder: Path, rows: int, words: int, seed: int = 0) -> Path:
        """A sealed set of ``rows`` rows of ``words`` words each."""
        folder.mkdir(parents=True)
        inputs = {"corpus": len(self.words), "words": words, "seed": seed}
        card = RunCard.plan(inputs=inputs, rows=rows, chunk_rows=CHUNK_ROWS, versions={})
        card.write(folder)
        (folder / TOKENIZER_FILE).parent.mkdir()
        self.tokenizer.save(str(folder / TOKENIZER_FILE))
        pieces = list(self._pieces(min(rows, DISTINCT_ROWS), words, seed))
        for chunk in range(card.chunks):
            start, stop = card.bounds(chunk)
            ids, references = pieces[chunk % len(pieces)]
            size = stop - start
            columns = {
                "row": list(range(start, stop)),
                "id": [f"row-{row}" for row in range(start, stop)],
                "prediction_ids": ids[:size],
                "references": references[:size],
                "finish_reason": pa.array(["eos"] * size).dictionary_encode(),
                "prompt_tokens": [1] * size,
                "truncated": [False] * size,
                "batch_rows": [1] * size,
            }
            table = pa.table(columns, schema=chunk_schema(text=False))
            write_chunk(folder / chunk_name(chunk), table, card, chunk)
        names = [RUN_CARD, TOKENIZER_FILE, *map(chunk_name, range(card.chunks))]
        sums = {name: file_sha256(folder / name) for name in names}
        (folder / SUMS).write_text(format_sums(sums))
        return folder

    def _pieces(
        self, rows: int, words: int, seed: int
    ) -> Iterator[tuple[list[list[int]], list[list[str]]]]:
        """Token ids and references, ``CHUNK_ROWS`` rows at a time."""
        rng = random.Random(seed)
        for start in range(0, rows, CHUNK_ROWS):
            ids, references = [], []
            for _ in range(min(CHUNK_ROWS, rows - start)):
                first = rng.randrange(len(self.words) - words)
                reference = self.words[first : first + words]
                ids.append(self._encode(self._disturb(reference, rng)))
                spaced = (_space(index) + word for index, word in enumerate(reference))
                references.append(["".join(spaced).strip()])
            yield ids, references

    def _disturb(self, words: list[str], rng: random.Random) -> list[str]:
        return [word if rng.random() > _REPLACED else rng.choice(self.words) for word in words]

    def _encode(self, words: list[str]) -> list[int]:
        ids: list[int] = []
        for index, word in enumerate(words):
            piece = _space(index) + word
            if piece not in self._ids:
                self._ids[piece] = self.tokenizer.encode(piece).ids
            ids += self._ids[piece]
        return [*ids, self.tokenizer.token_to_id(EOS)]


def _space(index: int) -> str:
    """What stands before the word; rougeLsum takes a line as a sentence."""
    return "\n" if index and index % _LINE_WORDS == 0 else " "
