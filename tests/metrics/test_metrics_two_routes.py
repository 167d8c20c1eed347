"""Metrics by two routes: groups of one row, copies as groups, classes one by one, rows left out."""

import numpy as np
import pytest

from hetcal.data import CalibrationSet
from hetcal.metrics import brier_decomposition, evaluate, smooth_calibration_error
from hetcal.metrics.ece import ece_statistic


def draw(n=60, K=3, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    return (rng.random((n, 1)) >= P.cumsum(axis=1)[:, :-1]).sum(axis=1), P, rng


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_groups_of_one_row_take_off_what_rows_take_off(norm):
    """Where the scores of a bin are one, its residuals vary as its outcomes do."""
    rng = np.random.default_rng(0)
    p = np.repeat([0.6, 0.7, 0.9], [10, 30, 20])
    y = (rng.random(60) < 0.8 * p).astype(int)
    items = CalibrationSet.to_score(y, p, groups=np.arange(60))
    parts = ece_statistic(items, kind="binary", n_bins=3, norm=norm).parts(np.ones((60, 1)))
    assert parts[2, 0] == pytest.approx(parts[1, 0])
    assert parts[1, 0] < parts[0, 0]


def test_class_wise_smooth_error_is_the_mean_of_the_classes():
    y, P, _ = draw()
    of_classes = [
        smooth_calibration_error(y == k, P[:, k], kind="binary") for k in range(P.shape[1])
    ]
    found = smooth_calibration_error(y, P, kind="class-wise")
    assert found == pytest.approx(np.mean(of_classes), abs=1e-5)


def test_rows_of_weight_zero_are_left_out_of_the_reference_too():
    y, P, rng = draw()
    Q = rng.dirichlet(np.ones(3), 60)
    weight = (np.arange(60) % 3 > 0).astype(float)
    kept = weight > 0
    options = {"recalibration": "isotonic", "classes": [0, 1, 2]}
    one = brier_decomposition(y, P, sample_weight=weight, reference_proba=Q, **options)
    other = brier_decomposition(y[kept], P[kept], reference_proba=Q[kept], **options)
    assert one.frame()["value"].tolist() == pytest.approx(other.frame()["value"].tolist())


def test_fewer_bins_find_less_to_repair():
    y, P, _ = draw(200)
    few, many = (
        brier_decomposition(y, P, recalibration="bins", n_bins=n).calibration for n in (2, 40)
    )
    assert few < many


def test_a_higher_confidence_is_a_wider_interval():
    y, P, _ = draw()
    narrow, wide = (
        evaluate(y, P, n_bootstrap=60, confidence=confidence) for confidence in (0.5, 0.95)
    )
    rows = ["brier_score", "log_loss", "accuracy"]
    width = [(table["high"] - table["low"]).loc[rows] for table in (narrow, wide)]
    assert (width[0] < 0.7 * width[1]).all()


def test_smooth_errors_of_copies_in_one_group_are_as_uncertain_as_those_of_the_rows():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=80)
    y = (rng.random(80) < p).astype(int)
    name, found = "smooth_calibration_error_binary", []
    for rows in (np.arange(80), np.repeat(np.arange(80), 5)):
        groups = np.char.zfill(rows.astype(str), 3)
        table = evaluate(y[rows], p[rows], groups=groups, groups_by=rows % 2, n_bootstrap=30)
        found.append(table.loc[name, ["value", "low", "high"]].to_numpy(dtype=float))
    np.testing.assert_allclose(found[1], found[0])
