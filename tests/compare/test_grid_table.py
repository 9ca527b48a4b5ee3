from __future__ import annotations

import csv
import io
import json
from typing import Any

from pipeline.compare.grid_result import Cell, Column, Grid, Row
from pipeline.compare.grid_table import to_csv, to_markdown, to_text


def column(group: str | None, score: str, scale: float, **more: Any) -> Column:
    return Column(
        group=group,
        score=score,
        scale=scale,
        lower_is_better=False,
        rows=5,
        confidence=0.95,
        **more,
    )


BASELINE = [Cell(value=0.25, low=0.2, high=0.3), Cell(value=9.5, low=8.0, high=11.0)]
BETTER = [
    Cell(
        value=0.5, low=0.44, high=0.56, difference=0.25, difference_low=0.1, difference_high=0.4,
        p_value=0.02, verdict="better", best=True,
    ),
    Cell(
        value=8.25, low=7.0, high=10.0, difference=-1.25, difference_low=-2.0, difference_high=-1.0,
        p_value=0.03, verdict="worse",
    ),
]  # fmt: skip


def grid(**changes: Any) -> Grid:
    values: dict[str, Any] = {
        "across": "dataset",
        "baseline": "small|1",
        "confidence": 0.95,
        "replicates": 1000,
        "seed": 0,
        "missing": ["scores/talk/c"],
        "columns": [column("news", "rougeL", 1.0), column("talk", "bleu", 100.0)],
        "rows": [
            Row(system={"model": "small|1"}, cells=list(BASELINE)),
            Row(system={"model": "b"}, cells=list(BETTER)),
            Row(system={"model": "c"}, cells=[Cell(value=None, low=None, high=None), None]),
        ],
    }
    return Grid(**{**values, **changes})


LEGEND = [
    "▲ better, ▼ worse than the baseline: the 95% interval of the paired difference leaves out 0 "
    "(1000 replicates, seed 0; 2 tests, not corrected)",
    "[low, high]: the 95% interval of the score",
    "no scores (–) in scores/talk/c",
]


def test_text() -> None:
    assert to_text(grid()).splitlines() == [
        "model    news rougeL                        talk bleu",
        "small|1       0.2500      [0.2000, 0.3000]       9.50     [8.00, 11.00]",
        "b             0.5000  *▲  [0.4400, 0.5600]       8.25  ▼  [7.00, 10.00]",
        "c                  –                                –",
        "",
        "baseline small|1; news 5 rows, talk 5 rows; *: the best of its column",
        *LEGEND,
    ]


def test_markdown() -> None:
    assert to_markdown(grid()).splitlines() == [
        "| model | news rougeL | talk bleu |",
        "|---|---|---|",
        "| small\\|1 | 0.2500 [0.2000, 0.3000] | 9.50 [8.00, 11.00] |",
        "| b | **0.5000** ▲ [0.4400, 0.5600] | 8.25 ▼ [7.00, 10.00] |",
        "| c | – | – |",
        "",
        "* baseline small|1; news 5 rows, talk 5 rows; bold: the best of its column",
        *(f"* {line}" for line in LEGEND),
    ]


def test_csv_has_a_line_per_cell() -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(grid()))))
    assert len(lines) == 6
    assert lines[2] == {
        "dataset": "news", "model": "b", "score": "rougeL", "value": "0.5", "low": "0.44",
        "high": "0.56", "difference": "0.25", "difference_low": "0.1", "difference_high": "0.4",
        "p_value": "0.02", "verdict": "better", "best": "1",
    }  # fmt: skip
    assert (lines[5]["value"], lines[5]["best"]) == ("", "")


def test_one_data_set_has_no_name() -> None:
    columns = [column(None, "rougeL", 1.0), column(None, "bleu", 100.0)]
    found = grid(across=None, columns=columns, missing=[])
    assert to_text(found).splitlines()[0].split() == ["model", "rougeL", "bleu"]
    assert "; 5 rows; " in to_text(found)
    assert to_csv(found).startswith("model,score,value")


def test_json_holds_all() -> None:
    found = json.loads(grid().to_json())
    assert found["rows"][1]["cells"][0]["verdict"] == "better"
    assert found["rows"][2]["cells"] == [
        found["rows"][2]["cells"][0], None
    ]  # fmt: skip
    assert found["columns"][1]["group"] == "talk"
