"""The calibration set, its folds, and the one loop that predicts out of sample."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from hetcal import HiddenHeterogeneity, SimilarityCalibrator
from hetcal.data import CalibrationSet, Folds, out_of_sample
from hetcal.similarity import ForestProximity


def checked(n=40, seed=0, X=None, **named):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n)
    y = np.array(["a", "b", "c"])[np.arange(n) % 3]
    return CalibrationSet.check(
        rng.normal(size=(n, 2)) if X is None else X, y, y_proba=P, caller="test", **named
    )


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, pl.DataFrame, sparse.csr_array])
def test_a_part_holds_the_same_rows_of_everything(container):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    weight, groups = rng.uniform(0.1, 0.4, 40), np.arange(40) // 4
    items = checked(X=container(X), sample_weight=weight, groups=groups)
    rows = np.array([30, 3, 2, 17])
    part = items.take(rows)
    allow_sparse = container is sparse.csr_array
    encoded = part.features(allow_sparse=allow_sparse)
    np.testing.assert_array_equal(encoded.toarray() if allow_sparse else encoded, X[rows])
    assert type(part.X) is type(items.X)
    np.testing.assert_array_equal(part.codes, items.codes[rows])
    np.testing.assert_array_equal(part.scores.log_proba, items.scores.log_proba[rows])
    np.testing.assert_array_equal(part.weight, weight[rows])
    # Weights below one on average are scaled once, for the whole set.
    np.testing.assert_allclose(part.counts, (weight / weight.mean())[rows])
    np.testing.assert_array_equal(part.groups, [2, 0, 0, 1])
    again = part.take(np.array([1, 0]))
    np.testing.assert_array_equal(again.rows, [3, 30])
    np.testing.assert_array_equal(again.labels, items.labels[[3, 30]])


def test_a_part_without_a_class_keeps_its_column():
    items = checked()
    part = items.take(items.codes != 1)
    assert part.n_classes == 3
    assert part.onehot.shape == (part.n_items, 3)
    np.testing.assert_array_equal(part.unseen, [False, True, False])


def test_items_of_weight_zero_leave_no_trace_in_the_encoding():
    X = np.array([[1.0], [np.nan], [3.0], [100.0], [100.0], [100.0]])
    weight = np.array([1.0, 1, 1, 0, 0, 0])
    items = CalibrationSet.check(
        X, [0, 1, 0, 1, 0, 1], y_proba=np.full((6, 2), 0.5), sample_weight=weight, caller="test"
    )
    kept = items.with_positive_weight()
    assert kept.n_items == 3
    assert kept.features("impute")[1, 0] == 2.0
    assert items.features("impute")[1, 0] == 100.0


def test_each_way_of_treating_missing_values_has_its_own_encoding():
    X = np.array([[1.0], [np.nan], [3.0]])
    items = CalibrationSet.check(X, [0, 1, 0], y_proba=np.full((3, 2), 0.5), caller="test")
    part = items.take(np.array([1, 2]))
    for missing, value in {"keep": np.nan, "impute": 2.0}.items():
        np.testing.assert_array_equal(items.features(missing)[:, 0], [1, value, 3])
        np.testing.assert_array_equal(part.features(missing)[:, 0], [value, 3])


def test_another_output_comes_with_its_own_scores():
    items = checked()
    logits = np.random.default_rng(5).normal(size=(40, 3))
    other = items.with_output(logits, "logits")
    again = CalibrationSet.check(items.X, items.labels, logits=logits, caller="test")
    np.testing.assert_array_equal(other.scores.log_proba, again.scores.log_proba)
    np.testing.assert_array_equal(other.proba, again.proba)
    assert other.zero_floor is None
    assert items.with_output(items.output, "y_proba").zero_floor == items.zero_floor


def reversed_columns(**named):
    """Return how many warnings a model gets whose columns are exchanged."""
    codes = np.arange(200) % 2
    P = np.where(codes[:, None] == [0, 1], 0.1, 0.9)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CalibrationSet.check(None, codes, y_proba=P, caller="test", **named)
    return len(caught)


def test_weights_and_groups_reach_the_look_at_the_order_of_columns():
    assert reversed_columns() == 1
    assert reversed_columns(sample_weight=np.arange(200) < 8) == 0  # too few to tell
    assert reversed_columns(groups=np.arange(200) % 8) == 0
    assert reversed_columns(order_is_known=True) == 0


def test_folds_are_balanced_whole_and_repeatable():
    groups = np.repeat(np.arange(30), np.random.default_rng(0).integers(1, 9, 30))
    folds = Folds.make(len(groups), 5, seed=3, groups=groups)
    sizes = np.bincount(folds.number)
    assert np.ptp(sizes) <= 8
    assert all(len(set(folds.number[groups == g])) == 1 for g in range(30))
    np.testing.assert_array_equal(
        folds.number, Folds.make(len(groups), 5, seed=3, groups=groups).number
    )
    assert (Folds.make(100, 5, seed=0).number != Folds.make(100, 5, seed=1).number).any()
    assert len(Folds.make(3, 5, seed=0)) == 3
    assert len(Folds.make(4, 5, seed=0, groups=np.array([0, 0, 1, 1]))) == 2


def test_a_large_group_finds_a_fold_of_its_own():
    sizes = [1] * 10 + [10]
    groups = np.repeat(np.arange(11), sizes)
    for seed in range(5):
        assert np.bincount(Folds.make(20, 2, seed=seed, groups=groups).number).tolist() == [10, 10]


def test_folds_of_a_part_are_numbered_anew():
    folds = Folds(np.array([0, 1, 2, 0, 1, 2])).take(np.array([2, 3, 5]))
    assert [test.tolist() for _, test in folds] == [[1], [0, 2]]
    assert len(folds) == 2


def test_every_item_is_predicted_once_by_those_that_have_not_seen_it():
    folds = Folds.make(23, 4, seed=0)

    def learn(train):
        def predict(test):
            assert not set(train) & set(test)
            return np.column_stack([test, np.full(len(test), len(train))]).astype(float)

        return predict

    predicted = out_of_sample(learn, folds, 23)
    np.testing.assert_array_equal(predicted[:, 0], np.arange(23))
    np.testing.assert_array_equal(predicted[:, 1], 23 - np.bincount(folds.number)[folds.number])


def test_items_that_no_split_tests_have_no_prediction():
    split = [(np.array([0, 1]), np.array([3]))]
    predicted = out_of_sample(lambda _: lambda test: np.ones((2, len(test), 3)), split, 4)
    assert predicted.shape == (2, 4, 3)
    assert np.isnan(predicted[:, :3]).all()
    assert (predicted[:, 3] == 1).all()
    with pytest.raises(ValueError, match="no split"):
        out_of_sample(lambda _: lambda test: test, [], 4)


@pytest.mark.parametrize("kind", ["y_proba", "logits"])
def test_what_the_caller_changes_later_is_no_part_of_the_items(kind):
    rng = np.random.default_rng(0)
    output = rng.dirichlet(np.ones(2), 40) if kind == "y_proba" else rng.normal(size=(40, 2))
    weight, classes, y = rng.uniform(1, 2, 40), np.array(["a", "b"]), np.arange(40) % 2
    given = {kind: output, "sample_weight": weight, "classes": classes}
    items = CalibrationSet.check(None, classes[y], **given, caller="test")
    kept = [items.output.copy(), items.proba.copy(), items.weight.copy(), items.classes.copy()]
    output[:], weight[:], classes[:] = 0.5, 9.0, "z"
    for now, then in zip(
        [items.output, items.proba, items.weight, items.classes], kept, strict=True
    ):
        np.testing.assert_array_equal(now, then)


def test_a_fit_does_not_follow_later_changes_of_what_it_was_given():
    rng = np.random.default_rng(0)
    X, P, weight = rng.normal(size=(60, 2)), rng.dirichlet(np.ones(2), 60), rng.uniform(1, 2, 60)
    given = X.copy(), P.copy(), weight.copy()
    y = np.arange(60) % 2
    swc = SimilarityCalibrator(ForestProximity(5), n_neighbors=9).fit(
        given[0], y, y_proba=given[1], sample_weight=given[2]
    )
    hidden = HiddenHeterogeneity(estimate="paper", n_estimators=3).fit(
        given[0], y, y_proba=given[1], sample_weight=given[2]
    )
    before = swc.predict_proba(X, y_proba=P), hidden.subgroups()
    given[0][:], given[1][:], given[2][:] = 0.0, [0.9, 0.1], np.where(y == 0, 1.0, 2.0)
    np.testing.assert_array_equal(swc.predict_proba(X, y_proba=P), before[0])
    pd.testing.assert_frame_equal(hidden.subgroups(), before[1])
