from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.compare.result import Change, Comparison, Difference, Side, System
from pipeline.compare.table import to_markdown, to_text

SIDE = Side(scores="a", content="c0", rows=5, complete=True)


def difference(**changes: Any) -> Difference:
    values: dict[str, Any] = {
        "scale": 1.0,
        "lower_is_better": False,
        "baseline": 0.25,
        "system": 0.5,
        "difference": 0.25,
        "low": -0.00001,
        "high": 0.51,
        "p_value": 0.0199,
        "undefined_replicates": 0,
        "wins": 3,
        "ties": 1,
        "losses": 1,
        "undefined_rows": 0,
        "changed": [Change(id="x|y", baseline=0.0, system=1.0, difference=1.0)],
    }
    return Difference(**{**values, **changes})


def comparison(**changes: Any) -> Comparison:
    undefined = difference(
        scale=100.0, baseline=12.345, system=None, difference=None, low=None, high=None,
        p_value=None, wins=0, ties=0, losses=0, undefined_rows=5, changed=[],
    )  # fmt: skip
    system = System(
        scores="b", content="c1", rows=4, complete=False,
        differences={"rouge1": difference(), "bleu": undefined},
    )  # fmt: skip
    values: dict[str, Any] = {
        "rows": 5,
        "confidence": 0.95,
        "replicates": 1000,
        "seed": 0,
        "signatures": {"rouge": "nrefs:1"},
        "not_compared": [],
        "baseline": SIDE,
        "systems": [system],
    }
    return Comparison(**{**values, **changes})


def test_text() -> None:
    assert to_text(comparison()).splitlines() == [
        "baseline a; 5 rows compared, 1000 replicates, seed 0",
        "",
        "b (partial: 4 rows) against a",
        "",
        "        baseline  system  difference        95% interval       p  wins  ties  losses",
        "rouge1    0.2500  0.5000     +0.2500  [+0.0000, +0.5100]  0.0199     3     1       1",
        "bleu       12.35       –           –                   –       –     0     0       0",
        "",
        "rows that changed most",
        "",
        "        id   baseline  system  difference",
        "rouge1  x|y    0.0000  1.0000     +1.0000",
    ]


def test_markdown() -> None:
    lines = to_markdown(comparison(confidence=0.999)).splitlines()
    assert lines[2:8] == [
        "### b (partial: 4 rows) against a",
        "",
        "|  | baseline | system | difference | 99.9% interval | p | wins | ties | losses |",
        "| :-- | --: | --: | --: | --: | --: | --: | --: | --: |",
        "| rouge1 | 0.2500 | 0.5000 | +0.2500 | [+0.0000, +0.5100] | 0.0199 | 3 | 1 | 1 |",
        "| bleu | 12.35 | – | – | – | – | 0 | 0 | 0 |",
    ]
    assert lines[-4:] == [
        "| :-- | :-- | --: | --: | --: |",
        r"| rouge1 | x\|y | 0.0000 | 1.0000 | +1.0000 |",
        "",
        "- rouge: `nrefs:1`",
    ]


def test_nothing_changed_and_something_not_compared() -> None:
    system = System(
        scores="b", content="c1", rows=5, complete=True,
        differences={"rouge1": difference(changed=[])},
    )  # fmt: skip
    text = to_text(comparison(systems=[system], not_compared=["meteor"]))
    assert "rows that changed most" not in text
    assert "not compared, since they are no sums of statistics: meteor" in text


@pytest.mark.parametrize("form", [to_text, to_markdown])
def test_an_id_cannot_break_the_table(form: Any) -> None:
    change = Change(id="a\nb", baseline=0.0, system=1.0, difference=1.0)
    system = System(
        scores="b", content="c1", rows=5, complete=True,
        differences={"rouge1": difference(changed=[change])},
    )  # fmt: skip
    assert r"'a\nb'" in form(comparison(systems=[system]))


def test_json_holds_all_in_a_stable_order() -> None:
    text = comparison().to_json()
    found = json.loads(text)
    assert list(found) == [
        *("rows", "confidence", "replicates", "seed", "signatures", "not_compared"),
        *("baseline", "systems"),
    ]
    (system,) = found["systems"]
    assert system["differences"]["bleu"]["system"] is None
    assert system["differences"]["rouge1"]["changed"] == [
        {"id": "x|y", "baseline": 0.0, "system": 1.0, "difference": 1.0}
    ]
    assert text.endswith("\n")
