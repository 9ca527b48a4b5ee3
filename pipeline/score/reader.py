"""The texts of a whole set, in row order, a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.score.decode import load_decoder
from pipeline.score.texts import Texts, read_texts
from pipeline.store.prediction_set import PredictionSet

if TYPE_CHECKING:
    from pipeline.score.settings import Settings


def read_blocks(settings: Settings, source: PredictionSet) -> Iterator[Texts]:
    """Texts of the chunks that are there; one row group is in memory.

    Raises:
        PredictionSetError: a chunk cannot be used.
    """
    card = settings.card
    decoder = load_decoder(settings.tokenizer, card.decode) if settings.tokenizer else None
    for chunk in source.present():
        reader = source.reader(chunk)
        for table in reader.tables():
            yield read_texts(table, reader.where, decoder, settings.normalizer)
