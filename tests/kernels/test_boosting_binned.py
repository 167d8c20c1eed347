"""Boosting on binned features: against a plain tree, core against core, folds together."""

import pickle
from dataclasses import fields

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.ensemble import HistGradientBoostingClassifier

from hetcal.kernels import native, use_core
from hetcal.kernels.binned_features import bin_features
from hetcal.kernels.boosted_trees import BoostedTrees
from hetcal.kernels.boosting_binned import BinnedBoosting, make_slots
from hetcal.metrics import brier_score

needs_core = pytest.mark.skipif(native() is None, reason="the compiled core was not built")
CORES = ["pure", pytest.param("native", marks=needs_core)]


@pytest.fixture(params=CORES)
def core(request):
    with use_core(request.param):
        yield request.param


def items(n=200, d=5, n_classes=2, seed=0, missing=0.15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 0] = X[:, 0].round()  # ties
    X[:, 1] = 3.0  # nothing to learn, where it is known
    y = (X[:, 0] + X[:, 2] > rng.normal(size=n)) + rng.integers(0, n_classes - 1, n)
    X[rng.random((n, d)) < missing] = np.nan
    return X.astype(np.float32).astype(float), y.astype(np.int64)


def same(one: BoostedTrees, two: BoostedTrees) -> None:
    for field in fields(BoostedTrees):
        a, b = getattr(one, field.name), getattr(two, field.name)
        np.testing.assert_array_equal(a, b, err_msg=field.name)


# -- against plain loops ---------------------------------------------------------------------------


def plain_splits(X, rows):
    """Return every way to part some rows: thresholds of each column, missing values on a side."""
    for j in range(X.shape[1]):
        x = X[rows, j]
        for t in np.unique(x[~np.isnan(x)]):
            yield x <= t
            if np.isnan(x).any():
                yield ~(x > t)


def plain_tree(X, G, H, W, n_leaves, l2, least):
    """Return what a leaf-wise tree says of its items, leaf by leaf and split by split."""

    def worth(rows):
        return G[rows].sum() ** 2 / (H[rows].sum() + l2)

    def best(rows):
        found = (1e-10, None, None)
        for left in plain_splits(X, rows):
            one, two = rows[left], rows[~left]
            if min(W[one].sum(), W[two].sum()) < least:
                continue
            gain = worth(one) + worth(two) - worth(rows)
            if gain > found[0] + 1e-9:
                found = (gain, one, two)
        return found

    leaves = [np.arange(len(X))]
    while len(leaves) < n_leaves:
        splits = [best(rows) for rows in leaves]
        k = int(np.argmax([gain for gain, *_ in splits]))
        if splits[k][1] is None:
            break
        leaves[k : k + 1] = splits[k][1:]
    said = np.empty(len(X))
    for rows in leaves:
        said[rows] = -G[rows].sum() / (H[rows].sum() + l2)
    return said


@pytest.mark.parametrize("n_leaves", [2, 4, 9])
def test_one_round_is_the_plain_tree(core, n_leaves):
    X, y = items(110, 4)
    X[:, 2:] = X[:, 2:].round(1).astype(np.float32)  # fewer than 64 values: each has a slot
    weight = np.random.default_rng(1).uniform(0.5, 3.0, 110)  # no two splits gain the same
    boosting = BinnedBoosting(n_rounds=1, learning_rate=1.0, n_leaves=n_leaves, l2=0.5)
    trees = boosting.fit(bin_features(X), y, least_weight=7, weight=weight)
    assert (trees.left < 0).sum() == n_leaves
    share = np.average(y, weights=weight)
    G, H = weight * (share - y), weight * share * (1 - share)
    expected = np.log(share / (1 - share)) + plain_tree(X, G, H, weight, n_leaves, 0.5, 7)
    np.testing.assert_allclose(trees.predict_proba(X)[:, 1], expit(expected), atol=1e-6)


def test_rounds_follow_the_loss_of_three_classes(core):
    X, y = items(90, 3, 3)
    X = X.round(1).astype(np.float32).astype(float)
    boosting = BinnedBoosting(n_rounds=3, learning_rate=0.5, n_leaves=3, l2=1.0)
    said = boosting.fit(bin_features(X), y, least_weight=5).predict_proba(X)
    truth = np.eye(3)[y]
    scores = np.tile(np.log(truth.mean(axis=0)), (90, 1))
    for _ in range(3):
        p = softmax(scores, axis=1)
        scores = scores + 0.5 * np.column_stack([
            plain_tree(X, p[:, k] - truth[:, k], p[:, k] * (1 - p[:, k]), np.ones(90), 3, 1.0, 5)
            for k in range(3)
        ])  # fmt: skip
    np.testing.assert_allclose(said, softmax(scores, axis=1), atol=1e-6)


def test_as_good_as_scikit_learn():
    X, y = items(3000, 12, 3, seed=2)
    options = {"learning_rate": 0.1, "max_iter": 40, "max_leaf_nodes": 12, "l2_regularization": 1.0}
    theirs = HistGradientBoostingClassifier(early_stopping=False, **options).fit(X[:800], y[:800])
    ours = BinnedBoosting(n_rounds=40).fit(bin_features(X[:800]), y[:800], least_weight=20)
    score = brier_score(y[800:], ours.predict_proba(X[800:]))
    assert score < 1.01 * brier_score(y[800:], theirs.predict_proba(X[800:]))


# -- core against core, threads, folds -------------------------------------------------------------


@needs_core
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_cores_grow_the_same_trees(n_classes, weighted):
    X, y = items(300, 8, n_classes)
    weight = np.random.default_rng(0).random(300) if weighted else None
    boosting, binned = BinnedBoosting(n_rounds=12), bin_features(X)
    fold = np.arange(300) % 3
    options = {"least_weight": np.array([3.0, 5.0, 4.0]), "weight": weight}
    with use_core("pure"):
        pure = boosting.fit(binned, y, least_weight=3, weight=weight)
        said, folds = (
            pure.predict_proba(X),
            boosting.out_of_fold(binned, y, n_classes, fold, **options),
        )
    with use_core("native"):
        for n_jobs in (1, 3):
            same(boosting.fit(binned, y, least_weight=3, weight=weight, n_jobs=n_jobs), pure)
            again = boosting.out_of_fold(binned, y, n_classes, fold, **options, n_jobs=n_jobs)
            np.testing.assert_array_equal(again, folds)
        np.testing.assert_array_equal(pure.predict_proba(X), said)


def test_folds_side_by_side_are_fits_of_their_own(core):
    X, y = items(240, 5, 3)
    binned, fold = bin_features(X), np.arange(240) % 3
    weight = np.random.default_rng(0).random(240) + 0.5
    boosting = BinnedBoosting(n_rounds=8)
    Q = boosting.out_of_fold(binned, y, 3, fold, least_weight=np.full(3, 4.0), weight=weight)
    for j in range(3):
        train, test = np.flatnonzero(fold != j), np.flatnonzero(fold == j)
        alone = boosting.fit(binned.take(train), y[train], least_weight=4, weight=weight[train])
        np.testing.assert_allclose(Q[test], alone.predict_proba(X[test]), atol=1e-5)


def test_labels_of_a_fold_do_not_reach_it(core):
    X, y = items(120, 4, 3)
    fold = np.arange(120) % 2
    other = np.where(fold == 0, (y + 1) % 3, y)
    options = {"least_weight": np.full(2, 4.0)}
    boosting, binned = BinnedBoosting(n_rounds=5), bin_features(X)
    one, two = (boosting.out_of_fold(binned, labels, 3, fold, **options) for labels in (y, other))
    np.testing.assert_array_equal(one[fold == 0], two[fold == 0])
    assert not np.array_equal(one[fold == 1], two[fold == 1])


def test_a_class_that_the_other_folds_lack(core):
    X, y = items(60, 3)
    y[0] = 2
    fold = np.where(np.arange(60) < 20, 0, 1)
    options = {"least_weight": np.full(2, 3.0)}
    Q = BinnedBoosting(n_rounds=20).out_of_fold(bin_features(X), y, 3, fold, **options)
    np.testing.assert_allclose(Q.sum(axis=1), 1.0)
    assert Q[fold == 0, 2].max() < 1e-3


def test_weights_count_items(core):
    X, y = items(120, 5, 3)
    X = X.round()  # few values, so that the bins are the same with and without copies
    weight = np.random.default_rng(0).integers(1, 4, 120)
    rows = np.repeat(np.arange(120), weight)
    boosting = BinnedBoosting(n_rounds=10)
    weighted = boosting.fit(bin_features(X), y, least_weight=6, weight=weight.astype(float))
    copied = boosting.fit(bin_features(X[rows]), y[rows], least_weight=6)
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-6)


# -- missing values, slots, odd settings -----------------------------------------------------------


@pytest.mark.parametrize("positive_when_missing", [True, False])
def test_missing_values_go_to_the_better_side(core, positive_when_missing):
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = (x > 0).astype(np.int64)
    missing = rng.random(400) < 0.3
    x[missing], y[missing] = np.nan, int(positive_when_missing)
    trees = BinnedBoosting(n_rounds=30).fit(bin_features(x[:, None]), y, least_weight=5)
    Q = trees.predict_proba(np.array([[np.nan], [-2.0], [2.0]]))[:, 1]
    assert Q.round().tolist() == [int(positive_when_missing), 0, 1]


def test_a_missing_value_beside_one_value_is_a_difference(core):
    y = np.repeat([0, 1], 30)
    X = np.where(y == 1, np.nan, 5.0)[:, None]
    trees = BinnedBoosting(n_rounds=50).fit(bin_features(X), y, least_weight=3)
    assert trees.predict_proba(np.array([[np.nan], [5.0], [9.0]]))[:, 1].round().tolist() == [
        1,
        0,
        0,
    ]


def test_a_value_that_was_never_missing_follows_the_larger_side(core):
    y = np.repeat([0, 1], [20, 60])
    trees = BinnedBoosting(n_rounds=30).fit(bin_features(np.sort(y)[:, None]), y, least_weight=3)
    assert trees.predict_proba(np.array([[np.nan]]))[0, 1] > 0.9


def test_slots_join_neighbouring_bins():
    x = np.random.default_rng(0).normal(size=5000)
    x[:100] = np.nan
    slots = make_slots(bin_features(np.column_stack([x, x > 0])))
    of_x = slots.of_items[:, 0]
    np.testing.assert_array_equal(of_x == 63, np.isnan(x))
    counts = np.bincount(of_x)
    assert counts[:63].min() > 50
    for slot in (0, 30, 61):
        np.testing.assert_array_equal(of_x[100:] <= slot, x[100:] <= slots.threshold[0, slot])
    assert slots.threshold[0, 62] == np.inf
    assert set(slots.of_items[:, 1]) == {0, 1}
    assert slots.threshold[1, 0] == 0.5


@pytest.mark.parametrize("value", [np.nan, 7.0])
def test_columns_without_difference_leave_the_class_frequencies(core, value):
    y = np.array([4, 4, 4, 9])
    trees = BinnedBoosting(n_rounds=3).fit(bin_features(np.full((4, 2), value)), y, least_weight=1)
    np.testing.assert_array_equal(trees.classes_, [4, 9])
    np.testing.assert_allclose(trees.predict_proba(np.zeros((1, 2))), [[0.75, 0.25]], atol=1e-6)


@pytest.mark.parametrize("total", [1.0, 1e15])
def test_weights_of_any_size(core, total):
    X, y = items(150, 4)
    boosting, binned = BinnedBoosting(n_rounds=5, l2=1e-12 * total), bin_features(X)
    weight = np.full(150, total / 150)
    scaled = boosting.fit(binned, y, least_weight=total * 9.5 / 150, weight=weight)
    plain = BinnedBoosting(n_rounds=5, l2=150e-12).fit(binned, y, least_weight=9.5)
    np.testing.assert_allclose(scaled.predict_proba(X), plain.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("wrong", [{"n_leaves": 1}, {"l2": 0.0}, {"l2": np.nan}])
def test_settings_that_cannot_be(wrong):
    with pytest.raises(ValueError, match=f"BinnedBoosting: {next(iter(wrong))} must"):
        BinnedBoosting(**wrong)


@pytest.mark.parametrize(
    "change",
    [
        {"codes": np.arange(20)},
        {"codes": np.zeros(3, int)},
        {"fold": np.full(20, 2)},
        {"fold": np.zeros(3, int)},
        {"weight": -np.ones(20)},
        {"weight": np.zeros(20)},
        {"weight": np.full(20, np.nan)},
        {"weight": np.ones(3)},
    ],
)
def test_items_that_do_not_fit(core, change):
    data = {"codes": np.arange(20) % 2, "n_classes": 2, "fold": np.arange(20) % 2}
    with pytest.raises(ValueError, match=f"{next(iter(change))} must"):
        BinnedBoosting().out_of_fold(
            bin_features(np.arange(20.0)[:, None]), least_weight=np.ones(2), **{**data, **change}
        )


# -- prediction ------------------------------------------------------------------------------------


def test_prediction_by_hand(core):
    trees = BoostedTrees(
        feature=np.array([1, 0, 0, 0], np.int32),
        threshold=np.array([0.5, 0.0, 0.0, 0.0]),
        left=np.array([1, -1, -1, -1], np.int32),
        right=np.array([2, -1, -1, -1], np.int32),
        missing_left=np.array([0, 0, 0, 0], np.uint8),
        value=np.array([0.0, -1.0, 2.0, 0.25]),
        tree_offset=np.array([0, 3, 4]),
        baseline=np.array([0.5]),
        classes_=np.array([3, 8]),
        n_features=2,
    )
    X = np.array([[9.0, 0.5], [9.0, 0.6], [9.0, np.nan], [9.0, -np.inf]])
    expected = expit([-0.25, 2.75, 2.75, -0.25])
    np.testing.assert_allclose(trees.predict_proba(X)[:, 1], expected)
    copied = pickle.loads(pickle.dumps(trees))
    np.testing.assert_array_equal(copied.predict_proba(X), trees.predict_proba(X))
    assert trees.predict_proba(X[:0]).shape == (0, 2)
    with pytest.raises(ValueError, match="grown on 2 features"):
        trees.predict_proba(X[:, :1])


def test_rows_do_not_depend_on_their_block(core):
    X, y = items(150, 4, 3)
    trees = BinnedBoosting(n_rounds=5).fit(bin_features(X), y, least_weight=3)
    alone = np.vstack([trees.predict_proba(row[None]) for row in X])
    np.testing.assert_array_equal(trees.predict_proba(X), alone)
