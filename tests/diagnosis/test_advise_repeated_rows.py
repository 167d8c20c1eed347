"""Copies of rows are noticed; rows that are equal because features have few values are not."""

import numpy as np
import pandas as pd
import pytest

from hetcal.data import CalibrationSet
from hetcal.data.repeated_rows import n_rows_seen, repeated_rows
from hetcal.diagnosis.checks import check_repeated_rows


def items_of(X, *, y=None, p=None, groups=None):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, len(X)) if y is None else y
    if p is None:  # a function of the features, as a classifier's are
        number = pd.DataFrame(X).apply(lambda column: pd.factorize(column)[0]).to_numpy(float)
        p = 1 / (1 + np.exp(-np.sin(number).sum(axis=1)))
    return CalibrationSet.check(X, y, y_proba=p, groups=groups, caller="test")


def with_copies(X, n_copies, seed=0):
    rows = np.random.default_rng(seed).integers(0, len(X), n_copies)
    return np.concatenate([np.arange(len(X)), rows])


def measured(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=n), rng.integers(0, 2, n), rng.integers(0, 5, n)])


@pytest.mark.parametrize("n_copies", [30, 150, 900])
def test_copies_of_measured_rows_are_counted(n_copies):
    X = measured(500)
    rows = with_copies(X, n_copies)
    y = np.random.default_rng(1).integers(0, 2, 500)[rows]
    found = repeated_rows(items_of(X[rows], y=y))
    assert (found.n_repeats, found.n_same_label) == (n_copies, n_copies)


def test_copies_with_other_labels_are_told_apart():
    X = np.tile(measured(200), (2, 1))
    y = np.r_[np.arange(200) % 2, np.where(np.arange(200) < 50, 1, 0) ^ (np.arange(200) % 2)]
    found = repeated_rows(items_of(X, y=y))
    assert (found.n_repeats, found.n_same_label) == (200, 150)


def test_equal_features_with_other_probabilities_are_no_copies():
    X = np.tile(measured(200), (2, 1))
    p = np.linspace(0.1, 0.9, 400)
    assert repeated_rows(items_of(X, p=p)) is None
    assert repeated_rows(items_of(X, p=np.tile(p[:200], 2))).n_repeats == 200


def test_the_warning_names_the_remedy():
    X = measured(300)[with_copies(measured(300), 60)]
    warning = check_repeated_rows(items_of(X))
    assert warning.code == "repeated-rows"
    assert "60 of 360 rows" in warning.text
    assert "groups=" in warning.text
    assert warning.voids
    assert "until then nothing is recommended" in warning.text
    few = check_repeated_rows(items_of(measured(300)[with_copies(measured(300), 20)]))
    assert not few.voids


def test_groups_that_hold_the_copies_together_settle_it():
    rows = with_copies(measured(300), 100)
    X = measured(300)[rows]
    assert repeated_rows(items_of(X, groups=rows)) is None
    assert repeated_rows(items_of(X, groups=np.arange(400))).n_repeats == 100


def few_values(n, rng):
    return {
        "three binary columns": rng.integers(0, 2, (n, 3)).astype(float),
        "the same, standardised": rng.integers(0, 2, (n, 3)) / 0.37 - 0.123,
        "an age": rng.normal(40, 12, (n, 1)).round(),
        "an age and its decade": (lambda a: np.column_stack([a, a // 10]))(
            rng.normal(40, 12, n).round()
        ),
        "levels with a number each": rng.normal(size=12)[rng.integers(0, 12, n)][:, None],
        "two decimals": rng.normal(size=(n, 1)).round(2),
        "mostly zero": np.where(rng.random((n, 2)) < 0.7, 0.0, rng.exponential(size=(n, 2))),
        "words": pd.DataFrame({"a": rng.choice(list("xyz"), n), "b": rng.choice(list("uvw"), n)}),
        "measured, no copies": rng.normal(size=(n, 3)),
    }


@pytest.mark.parametrize("name", list(few_values(2, np.random.default_rng(0))))
@pytest.mark.parametrize("n", [60, 300, 3000])
def test_no_alarm_where_equal_rows_are_natural(n, name):
    for seed in range(5):
        X = few_values(n, np.random.default_rng(seed))[name]
        assert repeated_rows(items_of(X)) is None


def test_missing_values_and_minus_zero_are_equal_to_themselves():
    X = np.vstack([measured(100)] * 2)
    X[[3, 103], 1] = np.nan
    X[4, 1], X[104, 1] = 0.0, -0.0
    assert repeated_rows(items_of(X, p=np.full(200, 0.3))).n_repeats == 100


def test_calibration_rows_among_new_rows_are_counted():
    items, new = items_of(measured(500)), measured(100, seed=1)
    assert n_rows_seen(items, measured(500)[:40], items.output[:40]) == 40
    output = np.vstack([items.output[:40], items.output[:100]])
    assert n_rows_seen(items, np.vstack([measured(500)[:40], new]), output) == 40
    assert n_rows_seen(items, new, items.output[:100]) == 0


def test_rows_of_few_values_are_not_calibration_rows():
    X = np.random.default_rng(0).integers(0, 2, (400, 3)).astype(float)
    items = items_of(X, p=np.full(400, 0.5))
    assert n_rows_seen(items, X[:200], items.output[:200]) == 0
