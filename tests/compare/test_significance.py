from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest, _compute_p_value

from pipeline.compare.compare import compare
from pipeline.compare.resample import Resampled
from pipeline.compare.significance import difference, difference_interval, p_value
from pipeline.score.interval import Interval
from tests.compare.systems import make_rows, write_scores

NAN = float("nan")


def _side(value: float | None, replicates: list[float]) -> Resampled:
    return Resampled(value, np.array(replicates), np.empty(0))


def test_bleu_agrees_with_sacrebleu(tmp_path: Path) -> None:
    # sacreBLEU 2.6.0, --paired-bs; SACREBLEU_SEED at its default, 12345.
    systems = {"a": make_rows(400, 0.3, 1)}
    # From clearly different to hardly so, in both directions.
    for name, noise, seed in (("b", 0.29, 2), ("c", 0.28, 3), ("d", 0.33, 4), ("e", 0.25, 5)):
        systems[name] = make_rows(400, noise, seed)
    folders = [
        write_scores(tmp_path / name, rows, metrics=("bleu",)) for name, rows in systems.items()
    ]
    texts = [(name, [row[1] for row in rows]) for name, rows in systems.items()]
    references = [[row[2][0] for row in systems["a"]]]
    samples = 2000
    test = PairedTest(texts, {"BLEU": BLEU()}, references, test_type="bs", n_samples=samples)
    expected = test()[1]["BLEU"]
    found = compare(folders[0], folders[1:], replicates=samples)

    assert len(found.systems) == 4
    p_values = []
    for system, oracle in zip(found.systems, expected[1:], strict=True):
        bleu = system.differences["bleu"]
        assert bleu.system == oracle.score
        assert bleu.baseline == expected[0].score
        # Two estimates of one probability from as many draws each.
        error = math.sqrt(2 * oracle.p_value * (1 - oracle.p_value) / samples)
        assert bleu.p_value == pytest.approx(oracle.p_value, abs=4 * error + 1 / samples)
        p_values.append(bleu.p_value)
    assert min(p_values) < 0.01
    assert sum(0.02 < p < 0.98 for p in p_values) >= 2  # else the test would show nothing


def test_the_p_value_is_sacrebleus_formula() -> None:
    rng = np.random.default_rng(0)
    baseline, system = rng.normal(30, 1, 500), rng.normal(30.5, 1, 500)
    differences = np.abs(system - baseline)
    expected = _compute_p_value(differences - differences.mean(), 0.5)
    found = p_value(_side(30.0, baseline.tolist()), _side(30.5, system.tolist()))
    assert found == expected
    assert 0 < found < 1


def test_undefined_replicates_are_left_out_and_counted() -> None:
    baseline = _side(0.5, [1.0, NAN, 1.0, 2.0, 3.0])
    system = _side(1.0, [2.0, 0.5, NAN, 4.0, 6.0])
    assert difference_interval(baseline, system, 0.5) == Interval(1.5, 2.5, 2)
    # The differences 1, 2, 3, less their mean: one is above 0.5.
    assert p_value(baseline, system) == 2 / 4


def test_what_is_undefined_is_null() -> None:
    undefined, defined = _side(None, [NAN, NAN]), _side(0.5, [0.5, 0.6])
    for baseline, system in ((undefined, defined), (defined, undefined)):
        assert difference(baseline, system) is None
        assert difference_interval(baseline, system, 0.9) == Interval(None, None, 2)
        assert p_value(baseline, system) is None


def test_equal_sets_leave_nothing_to_test() -> None:
    side = _side(0.5, [0.5, 0.6])
    assert difference(side, side) == 0
    assert p_value(side, side) is None
