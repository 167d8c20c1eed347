"""Boosting with few columns per tree: against a plain greedy tree, and core against core."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

from hetcal.kernels import native, use_core
from hetcal.kernels.boosting import AdditiveTrees, Boosting
from hetcal.metrics import brier_score

CORES = [
    "pure",
    pytest.param(
        "native",
        marks=pytest.mark.skipif(native() is None, reason="the compiled core was not built"),
    ),
]


@pytest.fixture(params=CORES)
def core(request):
    with use_core(request.param):
        yield request.param


def items(n=200, d=6, n_classes=2, seed=0, missing=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 0] = X[:, 0].round()  # ties
    X[:, 1] = 3.0  # nothing to learn
    y = (X[:, 0] + X[:, 2] > rng.normal(size=n)).astype(np.int64) + rng.integers(
        0, n_classes - 1, n
    )
    X[rng.random((n, d)) < missing] = np.nan
    return X, y


def same(one: AdditiveTrees, two: AdditiveTrees) -> None:
    for name in ("classes_", "start", "column", "threshold", "value"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


def plain_split(X, G, H, l2, least_mass):
    """Try every column and every threshold; missing values go left."""
    best = (1e-10, None, None)
    for j in range(X.shape[1]):
        for t in [-np.inf, *np.unique(X[~np.isnan(X[:, j]), j])[:-1]]:
            left = ~(X[:, j] > t)
            if min(H[left].sum(), H[~left].sum()) < least_mass:
                continue
            gain = sum(G[s].sum() ** 2 / (H[s].sum() + l2) for s in (left, ~left))
            gain -= G.sum() ** 2 / (H.sum() + l2)
            if gain > best[0] + 1e-12:
                best = (gain, j, left)
    return best[1:]


def plain_leaf_scores(X, G, H, depth, l2, least_mass):
    column, left = (None, None) if depth == 0 else plain_split(X, G, H, l2, least_mass)
    if column is None:
        return np.full(len(X), -G.sum() / (H.sum() + l2))
    scores = np.empty(len(X))
    for side in (left, ~left):
        scores[side] = plain_leaf_scores(X[side], G[side], H[side], depth - 1, l2, least_mass)
    return scores


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_one_round_is_the_greedy_tree(core, depth):
    X, y = items(90, 4)
    X[:, [2, 3]] = X[:, [2, 3]].round(1)
    weight = np.random.default_rng(1).integers(1, 4, 90).astype(float)
    options = {"l2": 0.5, "least_mass": 0.8}
    # As many bins as values: every threshold is tried.
    boosting = Boosting(n_rounds=1, learning_rate=1.0, depth=depth, n_bins=90, **options)
    trees = boosting.fit(X, y, weight=weight)
    frequency = np.average(y, weights=weight)
    start = np.log(frequency / (1 - frequency))
    G, H = weight * (frequency - y), weight * frequency * (1 - frequency)
    expected = expit(start + plain_leaf_scores(X, G, H, depth, **options))
    np.testing.assert_allclose(trees.predict_proba(X)[:, 1], expected, atol=1e-12)


@pytest.mark.skipif(native() is None, reason="the compiled core was not built")
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_cores_grow_the_same_trees(n_classes, weighted):
    X, y = items(300, 30, n_classes)
    weight = np.random.default_rng(0).random(300) if weighted else None
    boosting = Boosting(n_rounds=25)
    with use_core("pure"):
        pure = boosting.fit(X, y, weight=weight, seed=3)
        said = pure.predict_proba(X)
    with use_core("native"):
        same(boosting.fit(X, y, weight=weight, seed=3), pure)
        same(boosting.fit(X, y, weight=weight, seed=3, n_jobs=3), pure)
        np.testing.assert_array_equal(pure.predict_proba(X), said)


def test_weights_count_items(core):
    X, y = items(120, 5, 3)
    X = X.round()  # few values, so that the bins are the same with and without copies
    weight = np.random.default_rng(0).integers(1, 4, 120)
    rows = np.repeat(np.arange(120), weight)
    boosting = Boosting(n_rounds=10)
    weighted = boosting.fit(X, y, weight=weight.astype(float))
    copied = boosting.fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-9)


def test_a_missing_value_can_be_the_whole_difference(core):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = np.where(y == 1, np.nan, rng.normal(size=200))[:, None]
    Q = Boosting(n_rounds=50).fit(X, y).predict_proba(np.array([[np.nan], [-9.0], [9.0]]))
    assert Q[0, 1] > 0.95
    assert (Q[1:, 1] < 0.05).all()


def test_a_missing_value_beside_one_value_is_a_difference(core):
    y = np.repeat([0, 1], 30)
    X = np.where(y == 1, np.nan, 5.0)[:, None]
    assert Boosting(n_rounds=50).fit(X, y).predict_proba(X)[-1, 1] > 0.95


@pytest.mark.parametrize("values", [(-1e308, 1e308), (1.0, np.nextafter(1.0, 2.0)), (0.0, 5e-324)])
def test_two_values_are_told_apart_however_far_or_close(core, values):
    y = np.repeat([0, 1], 30)
    trees = Boosting(n_rounds=50).fit(np.array(values)[y][:, None], y)
    assert trees.predict_proba(np.array(values)[:, None])[:, 1].round() == pytest.approx([0, 1])


@pytest.mark.parametrize("wrong", [{"n_bins": 1}, {"n_bins": 255}, {"l2": 0.0}])
def test_settings_that_cannot_be(wrong):
    with pytest.raises(ValueError, match=f"Boosting: {next(iter(wrong))} must"):
        Boosting(**wrong)


@pytest.mark.parametrize("value", [np.nan, 7.0])
def test_columns_without_difference_leave_the_class_frequencies(core, value):
    y = np.array([4, 4, 4, 9])
    trees = Boosting(n_rounds=3).fit(np.full((4, 2), value), y)
    np.testing.assert_array_equal(trees.classes_, [4, 9])
    np.testing.assert_allclose(trees.predict_proba(np.zeros((1, 2))), [[0.75, 0.25]])


def test_each_round_uses_few_columns_and_all_rounds_many(core):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 600)), rng.integers(0, 2, 150)
    trees = Boosting(n_rounds=60).fit(X, y)
    split = np.isfinite(trees.threshold)
    per_round = [np.unique(c[s]).size for c, s in zip(trees.column, split, strict=True)]
    assert max(per_round) <= 30
    assert np.unique(trees.column[split]).size > 300


def test_blocks_of_rows_and_no_rows(core):
    X, y = items(40, 4, 3)
    trees = Boosting(n_rounds=5).fit(X, y)
    many = np.tile(X, (60, 1))
    np.testing.assert_array_equal(trees.predict_proba(many)[-40:], trees.predict_proba(X))
    assert trees.predict_proba(X[:0]).shape == (0, 3)


def test_wide_items_are_learned_better_than_with_all_columns():
    # Many columns that say much the same, each with noise of its own.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1400)
    centres = rng.normal(size=(2, 3, 400))
    X = centres[y, rng.integers(0, 3, 1400)] + 4 * rng.normal(size=(1400, 400))
    few = Boosting().fit(X[:400], y[:400]).predict_proba(X[400:])
    every = HistGradientBoostingClassifier(random_state=0).fit(X[:400], y[:400])
    assert brier_score(y[400:], few) < 0.95 * brier_score(y[400:], every.predict_proba(X[400:]))
