"""Parts of the Brier score: they add up, and they find what was put in."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetcal.data import CalibrationSet, Folds
from hetcal.metrics import _crossfit, brier_decomposition, brier_score

RECALIBRATIONS = ["cross-fitted", "isotonic", "bins"]


def hidden_groups(n=1500, seed=0, slope=1.0, depth=0.0):
    """Two sub-populations, told apart by a feature, that share every score."""
    rng = np.random.default_rng(seed)
    z, side = rng.normal(scale=1.5, size=n), rng.choice([-1, 1], size=n)
    given_score = 1 / (1 + np.exp(-z))
    truth = given_score + depth * side * np.minimum(given_score, 1 - given_score)
    y = (rng.random(n) < truth).astype(int)
    score = 1 / (1 + np.exp(-slope * z))
    X = np.column_stack([side, rng.normal(size=n)])
    return X, y, score, given_score, truth


def three_classes(n=90, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), size=n)
    y = np.concatenate([[0, 1, 2], rng.integers(0, 3, n - 3)])
    return y, P, rng.uniform(0.2, 2, n)


@pytest.mark.parametrize("recalibration", RECALIBRATIONS)
@settings(max_examples=10)
@given(seed=st.integers(0, 2**31), n=st.integers(4, 60))
def test_parts_add_up(recalibration, seed, n):
    y, P, w = three_classes(n, seed)
    Q = np.random.default_rng(seed + 1).dirichlet(np.ones(3), size=n)
    parts = brier_decomposition(
        y, P, sample_weight=w, reference_proba=Q, recalibration=recalibration
    )
    brier = brier_score(y, P, sample_weight=w)
    assert parts.brier == pytest.approx(brier)
    assert parts.calibration + parts.refinement == pytest.approx(brier)
    assert parts.calibration + parts.uncertainty - parts.resolution == pytest.approx(brier)
    assert parts.calibration + parts.grouping + parts.irreducible == pytest.approx(brier)
    assert parts.irreducible == pytest.approx(brier_score(y, Q, sample_weight=w))
    frequencies = np.array([w[y == k].sum() for k in range(3)]) / w.sum()
    constant = np.tile(frequencies, (n, 1))
    assert parts.uncertainty == pytest.approx(brier_score(y, constant, sample_weight=w))


def test_bins_against_a_loop():
    y, P, w = three_classes()
    for j in range(3):
        P[:, j] = np.round(P[:, j], 1) + 0.05
    P /= P.sum(axis=1, keepdims=True)
    P = np.round(P, 1)
    C = np.zeros_like(P)
    for k in range(3):
        for i in range(len(y)):
            same = P[:, k] == P[i, k]
            C[i, k] = (w[same] * (y[same] == k)).sum() / w[same].sum()
    # With very many bins every distinct score has its own.
    parts = brier_decomposition(
        y, P, sample_weight=w, recalibration="bins", n_bins=100_000, normalized=False
    )
    expected = brier_score(y, C, sample_weight=w, normalized=False)
    assert parts.refinement == pytest.approx(expected)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**31))
def test_isotonic_parts_are_never_negative_and_do_not_depend_on_row_order(seed):
    y, P, w = three_classes(seed=seed)
    parts = brier_decomposition(y, P, sample_weight=w, recalibration="isotonic")
    assert parts.calibration >= -1e-12
    assert parts.resolution >= -1e-12
    order = np.random.default_rng(seed).permutation(len(y))
    shuffled = brier_decomposition(
        y[order], P[order], sample_weight=w[order], recalibration="isotonic"
    )
    assert shuffled.calibration == pytest.approx(parts.calibration)


@pytest.mark.parametrize("recalibration", ["isotonic", "bins"])
def test_weight_two_is_the_row_twice(recalibration):
    y, P, _ = three_classes()
    weight = np.arange(len(y)) % 3
    rows = np.repeat(np.arange(len(y)), weight)
    weighted = brier_decomposition(y, P, sample_weight=weight, recalibration=recalibration)
    repeated = brier_decomposition(y[rows], P[rows], recalibration=recalibration)
    assert weighted.calibration == pytest.approx(repeated.calibration)


def test_a_calibrated_homogeneous_classifier_has_neither_part():
    X, y, score, _, _ = hidden_groups()
    parts = brier_decomposition(y, score, X=X)
    assert parts.calibration == pytest.approx(0, abs=0.004)
    assert parts.grouping == pytest.approx(0, abs=0.006)


def test_over_confidence_is_calibration_and_hidden_groups_are_grouping():
    X, y, score, given_score, truth = hidden_groups(slope=2.0, depth=0.7)
    parts = brier_decomposition(y, score, X=X)
    calibration = 2 * np.mean((score - given_score) ** 2)
    grouping = 2 * np.mean((given_score - truth) ** 2)
    assert parts.calibration == pytest.approx(calibration, abs=0.015)
    assert 0.6 * grouping < parts.grouping < 1.2 * grouping
    with_truth = brier_decomposition(y, score, reference_proba=truth)
    assert with_truth.grouping == pytest.approx(grouping, abs=0.02)


@pytest.mark.parametrize(("towards_truth", "expected"), [(0.5, 1.0), (-0.5, 0.0)])
def test_no_more_is_taken_of_an_estimate_than_there_is(towards_truth, expected):
    """It goes half of the way to the labels, or away from them."""
    y, P, weight = three_classes()
    items = CalibrationSet.to_score(y, P, sample_weight=weight)
    candidate = items.proba + towards_truth * (items.onehot - items.proba)
    found = _crossfit._shrunk(items.proba, candidate, items, Folds.make(90, 5, seed=0))
    np.testing.assert_allclose(found, items.proba + expected * (candidate - items.proba))


def test_groups_keep_copies_of_a_row_in_one_fold():
    """Ten copies of each row: without groups a forest recognises the label of its copies."""
    X, y, score, _, _ = hidden_groups(n=80)
    copies = np.repeat(np.arange(80), 10)
    leaky = brier_decomposition(y[copies], score[copies], X=X[copies])
    grouped = brier_decomposition(y[copies], score[copies], X=X[copies], groups=copies)
    assert leaky.grouping > 0.15
    assert grouped.grouping < 0.05


def test_intervals_hold_the_values_and_mixed_tables_are_encoded():
    X, y, score, _, _ = hidden_groups(n=300, depth=0.7, slope=2.0)
    table = pd.DataFrame({"side": np.where(X[:, 0] > 0, "left", "right"), "noise": X[:, 1]})
    frame = brier_decomposition(y, score, X=table, n_bootstrap=200).frame()
    assert frame.index.tolist()[-2:] == ["grouping", "irreducible"]
    assert (frame["low"] < frame["value"]).all()
    assert (frame["value"] < frame["high"]).all()
    assert brier_decomposition(y, score).frame()["low"].isna().all()


def test_classes_that_are_rare_or_missing():
    P = np.random.default_rng(0).dirichlet(np.ones(4), size=30)
    y = np.array(["a"] * 28 + ["b", "c"])
    X = np.arange(60.0).reshape(30, 2)
    parts = brier_decomposition(y, P, X=X, classes=["a", "b", "c", "d"])
    assert parts.calibration + parts.grouping + parts.irreducible == pytest.approx(parts.brier)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recalibration": "platt"}, "recalibration must be one of"),
        ({"n_splits": 1}, "n_splits must be an integer of at least 2"),
        ({"n_bins": 0}, "n_bins must be"),
        ({"confidence": 95}, "confidence must lie between"),
        ({"X": np.ones((90, 1)), "reference_proba": np.full((90, 3), 1 / 3)}, "both X and"),
        ({"X": np.ones((89, 1))}, "90 rows but X has 89"),
        ({"reference_proba": np.full((90, 2), 1 / 2)}, "reference_proba must have one row"),
        ({"reference_proba": np.full((89, 3), 1 / 3)}, "reference_proba must have one row"),
        ({"groups": np.ones(90)}, "single value"),
        ({"n_bootstrap": -1}, "n_bootstrap must be"),
    ],
)
def test_bad_options(options, message):
    y, P, _ = three_classes()
    with pytest.raises(ValueError, match=message):
        brier_decomposition(y, P, **options)


def test_one_row_cannot_be_cross_fitted():
    with pytest.raises(ValueError, match="two or more rows or groups"):
        brier_decomposition([1], [0.7], classes=[0, 1])
    parts = brier_decomposition([1], [0.7], classes=[0, 1], recalibration="isotonic")
    assert parts.calibration == pytest.approx(0.18)
