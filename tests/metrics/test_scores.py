"""Scores against naive loops and scikit-learn, and the properties every score must have."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from hetcal.metrics import (
    accuracy,
    brier_score,
    expected_calibration_error,
    expected_cost,
    log_loss,
    smooth_calibration_error,
)

COST = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [9.0, 3.0, 0.0]])


def cost_of_three(y, y_proba, **options):
    return expected_cost(y, y_proba, COST, **options)


def classwise_error(y, y_proba, **options):
    return expected_calibration_error(y, y_proba, kind="class-wise", n_bins=4, **options)


def equal_width_error(y, y_proba, **options):
    return expected_calibration_error(y, y_proba, binning="equal-width", norm="l2", **options)


METRICS = [
    brier_score,
    log_loss,
    accuracy,
    cost_of_three,
    expected_calibration_error,
    classwise_error,
    equal_width_error,
    smooth_calibration_error,
]


def sample(n=60, K=3, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), size=n)
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    return y, P, rng.integers(1, 4, n).astype(float)


def naive_mean(y, P, weight, loss):
    return sum(w * loss(c, row) for c, row, w in zip(y, P, weight, strict=True)) / sum(weight)


def test_brier_score_against_a_loop():
    y, P, w = sample()

    def loss(c, row):
        return sum((p - (k == c)) ** 2 for k, p in enumerate(row))

    assert brier_score(y, P, sample_weight=w) == pytest.approx(naive_mean(y, P, w, loss))


def test_expected_cost_against_a_loop():
    y, P, w = sample()

    def loss(c, row):
        expected = [sum(row[k] * COST[k, j] for k in range(3)) for j in range(3)]
        return COST[c, expected.index(min(expected))]

    assert cost_of_three(y, P, sample_weight=w) == pytest.approx(naive_mean(y, P, w, loss))


def test_zero_one_cost_is_one_minus_accuracy():
    y, P, w = sample()
    cost = expected_cost(y, P, 1 - np.eye(3), sample_weight=w)
    assert cost == pytest.approx(1 - accuracy(y, P, sample_weight=w))


def test_a_third_decision_is_taken_where_it_is_cheaper():
    with_a_person = [[0, 1, 0.2], [1, 0, 0.2]]
    assert expected_cost([0, 1], [0.5, 0.9], with_a_person) == pytest.approx(0.1)


def test_log_loss_and_accuracy_against_scikit_learn():
    y, P, w = sample()
    assert log_loss(y, P, sample_weight=w) == pytest.approx(
        sklearn_metrics.log_loss(y, P, sample_weight=w)
    )
    assert accuracy(y, P, sample_weight=w) == pytest.approx(
        sklearn_metrics.accuracy_score(y, P.argmax(axis=1), sample_weight=w)
    )


def test_log_loss_of_impossible_events_against_scikit_learn():
    y, P = [0, 1, 1], np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]])
    assert log_loss(y, P) == pytest.approx(sklearn_metrics.log_loss(y, P))
    assert log_loss(y, P, eps=0.01) == pytest.approx(
        -(np.log(0.99) + np.log(0.01) + np.log(0.5)) / 3
    )


@pytest.mark.skipif(
    "scale_by_half" not in inspect.signature(sklearn_metrics.brier_score_loss).parameters,
    reason="this scikit-learn has no brier_score_loss(scale_by_half=...)",
)
@pytest.mark.parametrize("K", [2, 3])
def test_brier_score_against_scikit_learn(K):
    y, P, w = sample(K=K)
    theirs = sklearn_metrics.brier_score_loss(y, P, sample_weight=w, scale_by_half=False)
    assert brier_score(y, P, sample_weight=w) == pytest.approx(theirs)


def test_the_range_of_the_brier_score():
    assert brier_score([0, 1], [0.0, 1.0]) == 0
    assert brier_score([0, 1], [1.0, 0.0]) == 2
    assert brier_score([0, 1, 2], np.full((3, 3), 1 / 3)) == pytest.approx(1 - 1 / 3)


def test_accuracy_takes_the_first_of_tied_classes():
    assert accuracy(["a", "b"], [[0.5, 0.5], [0.5, 0.5]]) == 0.5
    assert accuracy(["a"] * 2, [[0.4, 0.2, 0.4]] * 2, classes=["a", "b", "c"]) == 1.0


@pytest.mark.parametrize("metric", METRICS)
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(metric):
    y, P, _ = sample()
    weight = np.arange(y.shape[0]) % 3
    rows = np.repeat(np.arange(y.shape[0]), weight)
    weighted = metric(y, P, sample_weight=weight, classes=[0, 1, 2])
    assert weighted == pytest.approx(metric(y[rows], P[rows], classes=[0, 1, 2]), abs=1e-9)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("factor", [1e-3, 17.0])
def test_the_scale_of_the_weights_does_not_matter(metric, factor):
    y, P, w = sample()
    assert metric(y, P, sample_weight=w * factor) == pytest.approx(metric(y, P, sample_weight=w))


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**31))
def test_the_order_of_rows_does_not_matter(metric, seed):
    y, P, w = sample(seed=seed)
    order = np.random.default_rng(seed).permutation(y.shape[0])
    shuffled = metric(y[order], P[order], sample_weight=w[order])
    assert shuffled == pytest.approx(metric(y, P, sample_weight=w), abs=1e-9)


@pytest.mark.parametrize("metric", [m for m in METRICS if m is not cost_of_three])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**31))
def test_the_order_of_classes_does_not_matter(metric, seed):
    y, P, w = sample(seed=seed)
    order = np.random.default_rng(seed).permutation(3)
    names = np.array(["x", "y", "z"])
    moved = metric(names[y], P[:, order], classes=names[order], sample_weight=w)
    assert moved == pytest.approx(metric(y, P, sample_weight=w), abs=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_relabelling_the_classes_does_not_matter(metric):
    y, P, _ = sample()
    expected = metric(y, P)
    assert metric(np.array(["a", "b", "c"])[y], P) == expected
    assert metric(np.array([-5, 10, 77])[y], P) == expected


@settings(max_examples=30)
@given(seed=st.integers(0, 2**31), n=st.integers(2, 30))
def test_bounds(seed, n):
    y, P, w = sample(n=max(n, 3), seed=seed)
    assert 0 <= brier_score(y, P, sample_weight=w) <= 2
    for metric in (accuracy, expected_calibration_error, smooth_calibration_error):
        assert 0 <= metric(y, P, sample_weight=w) <= 1
    assert log_loss(y, P, sample_weight=w) >= 0


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, list])
def test_containers(metric, table):
    y, P, w = sample()
    expected = metric(y, P, sample_weight=w)
    if table is list:
        assert metric(y.tolist(), P.tolist(), sample_weight=w.tolist()) == expected
        return
    frame = table({f"p_{k}": P[:, k] for k in range(3)})
    columns = table({"y": y, "w": w})
    assert metric(columns["y"], frame, sample_weight=columns["w"]) == expected


def test_one_column_is_the_second_class():
    y, p = ["no", "yes", "yes"], np.array([0.2, 0.9, 0.4])
    two = np.column_stack([1 - p, p])
    for metric in (brier_score, log_loss, accuracy, expected_calibration_error):
        assert metric(y, p) == metric(y, p[:, None]) == pytest.approx(metric(y, two))
    assert brier_score(y, p, classes=["yes", "no"]) == pytest.approx(brier_score(y, 1 - p))


def test_read_only_float32_and_one_row():
    y, P, _ = sample()
    narrow = P.astype(np.float32)
    narrow.setflags(write=False)
    assert brier_score(y, narrow) == pytest.approx(brier_score(y, P), abs=1e-6)
    assert brier_score(["b"], [[0.2, 0.8]], classes=["a", "b"]) == pytest.approx(0.08)


def test_a_missing_class_keeps_its_column():
    P = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])
    expected = (0.25 + 0.09 + 0.04 + 0.01 + 0.04 + 0.01) / 2
    assert brier_score(["a", "b"], P, classes=["a", "b", "c"]) == pytest.approx(expected)


def test_rows_that_do_not_sum_to_one_are_scored_on_request():
    P = np.array([[0.9, 0.4], [0.3, 0.3]])
    expected = (0.01 + 0.16 + 0.09 + 0.49) / 2
    assert brier_score([0, 1], P, normalized=False) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"Row 0 of y_proba sums to 1\.3"):
        brier_score([0, 1], P)


@pytest.mark.parametrize(
    ("y", "y_proba", "options", "message"),
    [
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], {}, "sums to 1.1"),
        ([0, 1], [[-0.1, 1.1], [0.5, 0.5]], {}, "cannot be negative"),
        ([0, 1], [[np.nan, 1.0], [0.5, 0.5]], {}, "holds NaN"),
        ([0, 1], [[3.0, 2.0], [0.5, 0.5]], {}, "logits"),
        ([0, 1], [0.2, 3.5], {}, "logits|percent"),
        ([0, 1], [[0.2, 0.3, 0.5]] * 2, {}, "3 columns but 2 classes"),
        ([0, 1, 0], [0.2, 0.3], {}, "3 rows but y_proba has 2"),
        ([0, 2], [0.2, 0.3], {"classes": [0, 1]}, "not in classes"),
        ([1, 1], [0.2, 0.3], {}, "2 columns but 1 classes"),
        ([], [], {}, "empty"),
        ([0, 1], [0.2, 0.3], {"sample_weight": [1.0]}, "1 values but there are 2 rows"),
        ([0, 1], [0.2, 0.3], {"sample_weight": [1.0, -1.0]}, "not negative"),
        ([0, 1], [0.2, 0.3], {"sample_weight": [0.0, 0.0]}, "zero for every row"),
        ([0.5, 1.0], [0.2, 0.3], {}, "label"),
    ],
)
@pytest.mark.parametrize("metric", [brier_score, log_loss, smooth_calibration_error])
def test_bad_input(metric, y, y_proba, options, message):
    with pytest.raises(ValueError, match=message):
        metric(y, y_proba, **options)


def test_bad_options():
    with pytest.raises(ValueError, match="eps must lie between"):
        log_loss([0, 1], [0.2, 0.3], eps=0)
    with pytest.raises(ValueError, match="one row per class \\(2\\)"):
        expected_cost([0, 1], [0.2, 0.3], COST)
    with pytest.raises(ValueError, match="must be finite"):
        expected_cost([0, 1], [0.2, 0.3], [[0, np.inf], [1, 0]])
