"""``summary.json`` and ``metrics.json``: a tally as scores.

Neither holds a chunk, a path, a time, a host or the number of workers, so that the same predictions
and settings are the same bytes. An undefined score is null in the one and left out of the other,
which DVC shows and diffs: flat, numbers only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pipeline.schema import FORCED, SCHEMA_VERSION
from pipeline.score.config import ScoreConfig
from pipeline.score.groups import Key, sort_key
from pipeline.score.interval import Interval, intervals, require_room
from pipeline.score.metrics import NamedMetric
from pipeline.score.metrics.base import ColumnMetric, Scores
from pipeline.score.normalize import Normalizer
from pipeline.score.tally import Group, MetricTally, Tally

Summary = dict[str, Any]


def summarize(
    tally: Tally,
    metrics: tuple[NamedMetric, ...],
    config: ScoreConfig,
    expected_rows: int,
    content: str,
    modules: dict[str, dict[str, Any]],
) -> Summary:
    """All there is to say about a scored set, as it stands in ``summary.json``.

    Args:
        tally: sums over the set.
        metrics: the metrics they are of.
        config: the settings.
        expected_rows: rows of the set, whether they are there or not.
        content: hash of what was scored.
        modules: entries of the ``evaluate`` modules, which are not made of sums.
    """
    counts = tally.counts.references_per_row
    references_per_row = next(iter(counts)) if len(counts) == 1 else None
    entries = {
        named.label: _metric(named, sums, config.confidence, references_per_row)
        for named, sums in zip(metrics, tally.metrics, strict=True)
    }
    entries |= modules
    for entry in entries.values():
        entry["signature"] += _sign_texts(config)
    return {
        "schema_version": SCHEMA_VERSION,
        "content": content,
        "rows": tally.rows,
        "expected_rows": expected_rows,
        "complete": tally.rows == expected_rows,
        "counts": {
            "empty_predictions": tally.counts.empty_predictions,
            "empty_references": tally.counts.empty_references,
            "dropped_references": tally.counts.dropped_references,
            "null_references": tally.counts.null_references,
            "truncated": tally.truncated,
            "finish_reasons": dict(sorted(tally.finish_reasons.items())),
            "out_of_vocabulary_ids": tally.counts.out_of_vocabulary_ids,
        },
        "normalize": _plain(config.normalize),
        "decode": _plain(config.decode),
        "confidence": config.confidence,
        "replicates": config.replicates,
        "seed": config.seed,
        "warnings": [*_forced(tally, metrics, modules)]
        + [
            f"{named.label}: {warning}"
            for named, sums in zip(metrics, tally.metrics, strict=True)
            for warning in named.metric.warnings(sums.totals())
        ],
        "metrics": entries,
        "by": list(config.by),
        "groups": [
            _group(key, tally.groups[key], metrics, config)
            for key in sorted(tally.groups, key=sort_key)
        ],
    }


def _forced(
    tally: Tally, metrics: tuple[NamedMetric, ...], modules: Mapping[str, object]
) -> Iterator[str]:
    """A warning where texts are scored that nobody generated."""
    of_texts = [named.label for named in metrics if not isinstance(named.metric, ColumnMetric)]
    if FORCED in tally.finish_reasons and (of_texts or modules):
        yield (
            f"{', '.join([*of_texts, *modules])}: the texts are the best token after each true one "
            "(predict.engine: forced), so these are not scores of generated text"
        )


def _group(
    key: Key, group: Group, metrics: tuple[NamedMetric, ...], config: ScoreConfig
) -> dict[str, Any]:
    """Headline scores of some rows, of all metrics together: their names differ."""
    scores: dict[str, Any] = {}
    for named, sums in zip(metrics, group.metrics, strict=True):
        scores |= _headline(named, sums, config.confidence)[0]
    return {
        "values": dict(zip(config.by, key, strict=True)),
        "rows": group.rows,
        "scores": scores,
    }


def _plain(settings: Any) -> Any:
    """As JSON has it: maps and lists."""
    return msgspec.json.decode(msgspec.json.encode(settings))


def _sign_texts(config: ScoreConfig) -> str:
    """What every signature ends with when the texts are not scored as they are."""
    normalize = Normalizer(config.normalize).signature
    decode = config.decode.signature
    return (f"|norm:{normalize}" if normalize else "") + (f"|decode:{decode}" if decode else "")


def _metric(
    named: NamedMetric, tally: MetricTally, confidence: float, references_per_row: int | None
) -> dict[str, Any]:
    metric = named.metric
    entries, scores, found = _headline(named, tally, confidence)
    return {
        "metric": named.name,
        "options": _plain(metric.options),
        "signature": metric.signature(references_per_row),
        "scale": metric.scale,
        "scores": entries,
        "details": {
            named.rename(name): score
            for name, score in scores.items()
            if name not in metric.headline
        },
        "undefined_rows": {named.rename(name): rows for name, rows in tally.undefined.items()},
        "undefined_replicates": {
            named.rename(name): interval.undefined for name, interval in found.items()
        },
    }


def _headline(
    named: NamedMetric, tally: MetricTally, confidence: float
) -> tuple[dict[str, Any], Scores, dict[str, Interval]]:
    """Entries of the headline scores, and the scores and intervals they are made of."""
    metric = named.metric
    totals = tally.totals()
    scores = metric.scores(totals)
    if confidence:
        require_room(metric, totals)
    found = intervals(metric, tally.sums, confidence) if confidence else {}
    entries = {}
    for name in metric.headline:
        interval = found.get(name, Interval(None, None, 0))
        entries[named.rename(name)] = (
            None
            if scores[name] is None
            else {"value": scores[name], "low": interval.low, "high": interval.high}
        )
    return entries, scores, found


def flatten(summary: Summary) -> dict[str, float]:
    """The headline scores, ``rows`` and ``complete`` (0 or 1), as in ``metrics.json``."""
    flat = {
        name: entry["value"]
        for metric in summary["metrics"].values()
        for name, entry in metric["scores"].items()
        if entry is not None
    }
    return {**flat, "rows": summary["rows"], "complete": int(summary["complete"])}


def to_json(content: dict[str, Any]) -> str:
    """JSON text in the order of the keys; NaN is a bug, never written."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
