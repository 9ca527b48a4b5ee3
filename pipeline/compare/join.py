"""The rows that some sets share, matched by id, and the proof that their references are equal.

Row numbers and chunks do not matter, so sets may be cut or ordered in any way. The common order is
that of the baseline's row numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.compare.scored import Scored
from pipeline.errors import ScoresError
from pipeline.score.buffers import filled, from_numpy, to_numpy
from pipeline.score.ngrams import Integers

_EXAMPLES = 3


class Joined(NamedTuple):
    """Rows that all sets have.

    Attributes:
        rows: (rows,) their row numbers in the baseline, ascending.
        ids: (rows,) Arrow strings.
        places: per set, (rows of the set,) where each of its rows stands here; -1: nowhere.
    """

    rows: Integers
    ids: pa.Array
    places: list[Integers]


def join(sets: Sequence[Scored], common: bool) -> Joined:
    """Match the rows of ``sets``, the first of which is the baseline.

    Args:
        sets: two or more.
        common: leave out rows that one of them does not have.

    Raises:
        ScoresError: an id stands twice in a set; the sets hold other ids, and not ``common``; they
            share none; or the references of a row differ.
    """
    for scored in sets:
        _require_unique(scored)
    baseline, *systems = sets
    found = [_find(baseline, system) for system in systems]
    shared = np.ones(len(baseline.rows), np.bool_)
    for system, positions in zip(systems, found, strict=True):
        if not common:
            _require_same(baseline, system, positions)
        shared &= positions >= 0
    kept = np.flatnonzero(shared)
    if len(kept) == 0 and any(len(scored.rows) for scored in sets):
        raise ScoresError(
            f"{' and '.join(scored.name for scored in sets)} have no id in common, such as "
            f"{_named([scored.ids[0].as_py() for scored in sets if len(scored.ids)])}; compare "
            "scores of the same data set"
        )
    order = kept[np.argsort(baseline.rows[kept], kind="stable")]
    places = [_places(baseline, order)]
    for system, positions in zip(systems, found, strict=True):
        _require_same_references(baseline, system, order, positions[order])
        places.append(_places(system, positions[order]))
    return Joined(baseline.rows[order], baseline.ids.take(from_numpy(order)), places)


def _find(baseline: Scored, system: Scored) -> Integers:
    """(rows of the baseline,) where each of its ids stands in ``system``; -1: nowhere."""
    positions = pc.index_in(baseline.ids, value_set=system.ids)
    return filled(positions, -1).astype(np.int64)


def _places(scored: Scored, positions: Integers) -> Integers:
    places = np.full(len(scored.rows), -1)
    places[positions] = np.arange(len(positions))
    return places


def _require_unique(scored: Scored) -> None:
    if pc.count_distinct(scored.ids, mode="all").as_py() == len(scored.ids):
        return
    counted = pc.value_counts(scored.ids)
    repeated = counted.field(0).take(from_numpy(np.flatnonzero(to_numpy(counted.field(1)) > 1)))
    raise ScoresError(
        f"{scored.name}: {len(repeated)} ids stand there more than once "
        f"({_named(repeated[:_EXAMPLES].to_pylist(), len(repeated))}), so rows cannot be matched; "
        "give each example an id of its own (prepare.id) and score again"
    )


def _require_same(baseline: Scored, system: Scored, positions: Integers) -> None:
    met = np.zeros(len(system.rows), np.bool_)
    met[positions[positions >= 0]] = True
    alone = [_only_in(baseline, positions >= 0), _only_in(system, met)]
    if any(alone):
        raise ScoresError(
            f"{baseline.name} and {system.name} do not hold the same examples: "
            f"{'; '.join(filter(None, alone))}; compare those that both have with --common"
        )


def _only_in(scored: Scored, met: NDArray[np.bool_]) -> str:
    alone = np.flatnonzero(~met)
    if len(alone) == 0:
        return ""
    names = [scored.ids[int(index)].as_py() for index in alone[:_EXAMPLES]]
    return f"{len(alone)} of {len(met)} are only in {scored.name} ({_named(names, len(alone))})"


def _require_same_references(
    baseline: Scored, system: Scored, ours: Integers, theirs: Integers
) -> None:
    differ = np.flatnonzero(baseline.references[ours] != system.references[theirs])
    if len(differ) == 0:
        return
    names = [baseline.ids[int(index)].as_py() for index in ours[differ[:_EXAMPLES]]]
    raise ScoresError(
        f"{len(differ)} of {len(ours)} examples have other references in {system.name} than in "
        f"{baseline.name} ({_named(names, len(differ))}), so their scores cannot be compared; "
        "predict and score both on the same data set"
    )


def _named(ids: list[str], count: int | None = None) -> str:
    more = (count or len(ids)) - len(ids)
    return ", ".join(map(repr, ids)) + (f" and {more} more" if more else "")
