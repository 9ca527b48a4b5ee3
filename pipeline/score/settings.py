"""What all chunks of a run share, made of the prediction set and the section ``score``."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pipeline.errors import ConfigError, PredictionSetError
from pipeline.score.config import ScoreConfig
from pipeline.score.decode import TokenizerFile
from pipeline.score.groups import check_columns
from pipeline.score.keys import CacheKeys, make_keys
from pipeline.score.metrics import NamedMetric
from pipeline.score.normalize import Normalizer
from pipeline.score.references import REFERENCES_HASH
from pipeline.store.card import RunCard
from pipeline.store.place import Place
from pipeline.store.prediction_set import SUMS, TOKENIZER_FILE, PredictionSet


@dataclass(frozen=True)
class Settings:
    """See the module.

    Attributes:
        place: where the prediction set is.
        card: its run card, with the decode options of this run.
        tokenizer: to decode with; None for a set of texts.
        normalizer: what every text goes through.
        metrics: what to compute.
        replicates: of the bootstrap; 0 where no interval is wanted.
        seed: of the bootstrap.
        by: kept columns whose values make groups.
        output: folder for the scores of each example.
        cache: where statistics are remembered; None for nowhere.
    """

    place: Place
    card: RunCard
    tokenizer: TokenizerFile | None
    normalizer: Normalizer
    metrics: tuple[NamedMetric, ...]
    replicates: int
    seed: int
    by: tuple[str, ...]
    output: Path
    cache: CacheKeys | None


def make_settings(
    source: PredictionSet,
    config: ScoreConfig,
    metrics: tuple[NamedMetric, ...],
    output: Path,
    cache: Path | None,
) -> Settings:
    """The settings of a run.

    Args:
        source: the set.
        config: the section.
        metrics: what to compute.
        output: folder for the scores of each example.
        cache: folder in which statistics are remembered; None for nowhere.

    Raises:
        ConfigError: decode options for texts, a kept column called like a score, or groups by a
            column that was not kept.
        PredictionSetError: the tokenizer is missing or damaged.
    """
    normalizer = Normalizer(config.normalize)
    check_columns(config.by, source.card.keep)
    _check_kept(source.card.keep, metrics)
    card = _card(source, config)
    tokenizer = _tokenizer(source)
    keys = None
    if cache is not None:
        plain = tuple(named.metric for named in metrics)
        keys = make_keys(cache, plain, card, tokenizer, config.normalize)
    return Settings(
        place=source.place,
        card=card,
        tokenizer=tokenizer,
        normalizer=normalizer,
        metrics=metrics,
        replicates=config.replicates if config.confidence else 0,
        seed=config.seed,
        by=config.by,
        output=output,
        cache=keys,
    )


def _check_kept(keep: tuple[str, ...], named: tuple[NamedMetric, ...]) -> None:
    """Raise ``ConfigError`` where a kept column would stand twice in ``scores/``."""
    written = {REFERENCES_HASH}
    for metric in named:
        written |= {*metric.headline, *(column.name for column in metric.columns)}
    for name in keep:
        if name in written:
            raise ConfigError(
                f"the prediction set keeps a column '{name}' (prepare.keep), and score.metrics "
                "writes one of that name; rename it in the data set, or leave that metric out"
            )


def _card(source: PredictionSet, config: ScoreConfig) -> RunCard:
    card = source.card
    if card.prediction == "text" and config.decode.signature:
        raise ConfigError(
            f"score.decode: {source.place} holds text, which is not decoded; set "
            f"{config.decode.signature} back to null"
        )
    return msgspec.structs.replace(card, decode=config.decode.override(card.decode))


def _tokenizer(source: PredictionSet) -> TokenizerFile | None:
    if source.card.prediction == "text":
        return None
    path = source.place.at(TOKENIZER_FILE)
    try:
        sha256 = hashlib.sha256(source.place.read(TOKENIZER_FILE)).hexdigest()
    except FileNotFoundError:
        raise PredictionSetError(
            f"{source.place} holds token ids but no {TOKENIZER_FILE} to decode them with; copy "
            "the set again, or run `twophase predict` where the model is"
        ) from None
    if source.sums is not None and source.sums.get(TOKENIZER_FILE) != sha256:
        raise PredictionSetError(
            f"{path} is damaged: its sha256 is not the one in {SUMS}; copy the set again, or run "
            "`twophase predict` where the model is"
        )
    return TokenizerFile(source.place, sha256)
