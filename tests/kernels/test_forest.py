"""Forest kernels: scikit-learn's own trees, naive loops over pairs, and the pure twins."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier, IsolationForest, RandomForestClassifier

from hetcal.kernels import forest as fk
from hetcal.kernels import use_core
from hetcal.kernels._backend import native

CORES = ["pure"] if native() is None else ["pure", "native"]
needs_core = pytest.mark.skipif(native() is None, reason="the compiled core was not built")


@pytest.fixture(params=CORES)
def core(request):
    with use_core(request.param):
        yield request.param


def continuous(rng):
    X = rng.normal(size=(600, 9))
    return X, (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=600) > 0.5).astype(int)


def ties(rng):
    return rng.integers(0, 4, size=(500, 6)).astype(float), rng.integers(0, 3, 500)


def saturated(rng):
    """Return probabilities of which many differ by less than scikit-learn's 1e-7."""
    P = 1.0 - 10.0 ** -rng.uniform(0.0, 12.0, size=(600, 3))
    return np.c_[P, 1.0 - P], (rng.random(600) < 0.4).astype(int)


def saturated_three_classes(rng):
    X, _ = saturated(rng)
    return X, rng.integers(0, 3, len(X))


def constants(rng):
    X = rng.normal(size=(300, 8))
    X[:, [0, 3, 5]] = 1.5
    X[:, 6] = rng.random(300) < 0.02
    X[0, 7] = -0.0
    X[1:50, 7] = 0.0
    return X, rng.integers(0, 2, 300)


def letters(rng):
    y = rng.integers(0, 26, 700)
    return rng.integers(0, 16, size=(700, 7)) + (y % 5)[:, None] * 2.0, y


def one_class(rng):
    return rng.normal(size=(40, 3)), np.zeros(40, dtype=int)


def one_item(rng):
    return rng.normal(size=(1, 2)), np.zeros(1, dtype=int)


def two_items(rng):
    return np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([0, 1])


DATA = [
    continuous,
    ties,
    saturated,
    saturated_three_classes,
    constants,
    letters,
    one_class,
    one_item,
    two_items,
]


def assert_same_forest(ours, theirs):
    np.testing.assert_array_equal(ours.tree_offset, theirs.tree_offset)
    np.testing.assert_array_equal(ours.left, theirs.left)
    np.testing.assert_array_equal(ours.right, theirs.right)
    inner = ours.left >= 0
    np.testing.assert_array_equal(ours.feature[inner], theirs.feature[inner])
    np.testing.assert_array_equal(ours.threshold[inner], theirs.threshold[inner])
    np.testing.assert_array_equal(ours.missing_left[inner], theirs.missing_left[inner])
    np.testing.assert_array_equal(ours.leaf_index, theirs.leaf_index)
    if ours.in_bag is None:
        assert theirs.in_bag is None
    else:
        np.testing.assert_array_equal(ours.in_bag, theirs.in_bag)


@needs_core
@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("data", DATA)
def test_fit_equals_sklearn(data, bootstrap, splitter):
    X, y = data(np.random.default_rng(3))
    options = {"n_estimators": 12, "bootstrap": bootstrap, "random_state": 7}
    with use_core("native"):
        ours = fk.fit_forest(X, y, int(y.max()) + 1, splitter=splitter, **options)
    model = RandomForestClassifier if splitter == "best" else ExtraTreesClassifier
    theirs = model(**options).fit(X, y)
    assert_same_forest(ours, fk.from_sklearn(theirs))


@needs_core
@pytest.mark.parametrize("max_features", ["sqrt", "log2", None, 2, 0.5])
@pytest.mark.parametrize("min_samples_leaf", [1, 2, 7])
@pytest.mark.parametrize("data", [continuous, letters])
def test_fit_options_equal_sklearn(data, min_samples_leaf, max_features):
    X, y = data(np.random.default_rng(5))
    options = {
        "n_estimators": 4,
        "max_features": max_features,
        "min_samples_leaf": min_samples_leaf,
        "random_state": 1,
    }
    with use_core("native"):
        ours = fk.fit_forest(X, y, int(y.max()) + 1, **options)
    theirs = RandomForestClassifier(**options).fit(X, y)
    assert_same_forest(ours, fk.from_sklearn(theirs))


@needs_core
@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 60),
    d=st.integers(1, 5),
    n_values=st.integers(1, 80),
    n_classes=st.integers(1, 4),
)
def test_fit_equals_sklearn_on_anything(seed, n, d, n_values, n_classes):
    rng = np.random.default_rng(seed)
    # Values a few float32 steps apart, so that "too close to split" happens and is not transitive.
    X = rng.integers(0, n_values, size=(n, d)) * 4e-8 + rng.integers(0, 2, size=(n, d))
    y = rng.integers(0, n_classes, n)
    with use_core("native"):
        ours = fk.fit_forest(X, y, n_classes, n_estimators=3, random_state=seed % 1000)
    theirs = RandomForestClassifier(3, random_state=seed % 1000).fit(X, y)
    assert_same_forest(ours, fk.from_sklearn(theirs))


@needs_core
def test_fit_beyond_sixteen_bits_equals_sklearn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70_000, 2))
    y = (X[:, 0] > 0.3 * rng.normal(size=len(X))).astype(int)
    with use_core("native"):
        ours = fk.fit_forest(X, y, 2, n_estimators=1, random_state=2)
    theirs = RandomForestClassifier(1, random_state=2).fit(X, y)
    assert_same_forest(ours, fk.from_sklearn(theirs))


@needs_core
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("options", [{}, {"min_samples_leaf": 3}, {"bootstrap": False}])
def test_fit_of_many_small_columns_equals_sklearn(options, splitter, n_classes):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 5, size=(900, 600)).astype(np.float32)  # codes above a megabyte
    X[:, 1::3] *= rng.random((900, 200)) < 0.2  # the commonest value is the lowest, or one between
    X[:, 2::6] -= 2 * (X[:, 2::6] > 2)
    X[:, ::50] = rng.normal(size=(900, 12))
    y = (X[:, 1] + X[:, 50] + X[:, 301] + rng.normal(size=900)).round().astype(int) % n_classes
    options = {"n_estimators": 4, "random_state": 0, "bootstrap": True} | options
    model = RandomForestClassifier if splitter == "best" else ExtraTreesClassifier
    theirs = model(**options).fit(X, y)
    with use_core("native"):
        ours = fk.fit_forest(X, y, n_classes, splitter=splitter, **options)
    assert_same_forest(ours, fk.from_sklearn(theirs))


@needs_core
def test_fit_does_not_depend_on_n_jobs_order_or_dtype():
    X, y = continuous(np.random.default_rng(1))
    X = X.astype(np.float32)
    with use_core("native"):
        one = fk.fit_forest(X, y, 2, n_estimators=9)
        assert_same_forest(fk.fit_forest(X, y, 2, n_estimators=9, n_jobs=3), one)
        assert_same_forest(fk.fit_forest(np.asfortranarray(X), y, 2, n_estimators=9), one)
        assert_same_forest(fk.fit_forest(X.astype(float), y, 2, n_estimators=9), one)


def test_fit_with_missing_values_and_weights_goes_to_sklearn(core):
    rng = np.random.default_rng(2)
    X, y = continuous(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.uniform(0.5, 2.0, len(X))
    ours = fk.fit_forest(X, y, 2, n_estimators=5, sample_weight=weight)
    theirs = RandomForestClassifier(5, random_state=0).fit(X, y, sample_weight=weight)
    assert_same_forest(ours, fk.from_sklearn(theirs))
    np.testing.assert_array_equal(fk.apply(ours, X), sklearn_leaves(ours, theirs, X))


def test_fit_rejects_unknown_words():
    with pytest.raises(ValueError, match='"best" or "random"'):
        fk.fit_forest([[0.0], [1.0]], [0, 1], 2, splitter="worst")
    if native() is not None:
        with use_core("native"), pytest.raises(ValueError, match="max_features"):
            fk.fit_forest([[0.0], [1.0]], [0, 1], 2, max_features="all")


def sklearn_leaves(forest, model, X):
    node = model.apply(X) + forest.tree_offset[:-1]
    return forest.leaf_index[node]


@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 15, 16, 17, 100])
def test_apply_equals_sklearn(core, n_rows):
    rng = np.random.default_rng(4)
    X, y = continuous(rng)
    model = RandomForestClassifier(11, random_state=0).fit(X, y)
    forest = fk.from_sklearn(model)
    Z = rng.normal(size=(n_rows, X.shape[1]))
    expected = sklearn_leaves(forest, model, Z) if n_rows else np.empty((0, 11))
    for rows in (Z, Z.astype(np.float32), np.asfortranarray(Z), Z[::-1][::-1]):
        rows.setflags(write=False)
        np.testing.assert_array_equal(fk.apply(forest, rows), expected)
        np.testing.assert_array_equal(fk.apply(forest, rows, n_jobs=2), expected)


def test_apply_exactly_on_the_thresholds(core):
    rng = np.random.default_rng(6)
    X, y = saturated(rng)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    forest = fk.from_sklearn(model)
    thresholds = forest.threshold[forest.left >= 0]
    Z = rng.choice(np.r_[thresholds, np.nextafter(thresholds, 2), X[:, 0]], size=(400, X.shape[1]))
    np.testing.assert_array_equal(fk.apply(forest, Z), sklearn_leaves(forest, model, Z))


@pytest.mark.parametrize("n_features", [3, 5000])  # the core holds few features more compactly
def test_apply_puts_zeros_and_infinite_values_in_order(core, n_features):
    rng = np.random.default_rng(7)
    X = np.zeros((60, n_features), dtype=np.float32)
    X[:, :3] = rng.choice([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0], size=(60, 3))
    model = RandomForestClassifier(9, max_features=None, random_state=0).fit(X, X[:, 0] > 0)
    forest = fk.from_sklearn(model)
    inner = forest.left >= 0
    forest.threshold[inner] = rng.choice([-1.0, -0.0, 0.0, 1.0, 2.0], size=inner.sum())
    Z = np.zeros((50, n_features))
    Z[:, :3] = rng.choice([-np.inf, -1.0, -0.0, 0.0, 1e-45, 1.0, np.inf], size=(50, 3))
    expected = np.array([[leaf_of(forest, tree, row) for tree in range(9)] for row in Z])
    np.testing.assert_array_equal(fk.apply(forest, Z), expected)
    Z[17, :3] = np.nan  # a single row with missing values changes no other
    others = np.arange(50) != 17
    np.testing.assert_array_equal(fk.apply(forest, Z)[others], expected[others])


def leaf_of(forest, tree, row):
    node = forest.tree_offset[tree]
    while forest.left[node] >= 0:
        goes_left = np.float32(row[forest.feature[node]]) <= forest.threshold[node]
        node = forest.left[node] if goes_left else forest.right[node]
    return forest.leaf_index[node]


def test_apply_sends_missing_values_where_sklearn_does(core):
    rng = np.random.default_rng(8)
    X, y = continuous(rng)
    model = ExtraTreesClassifier(10, random_state=0).fit(X, y)
    forest = fk.from_sklearn(model)
    Z = X.copy()
    Z[rng.random(Z.shape) < 0.3] = np.nan
    # scikit-learn refuses missing values where it saw none in training; its trees know what to do.
    node = np.column_stack([tree.tree_.apply(Z.astype(np.float32)) for tree in model.estimators_])
    expected = forest.leaf_index[node + forest.tree_offset[:-1]]
    np.testing.assert_array_equal(fk.apply(forest, Z), expected)


def test_apply_of_isolation_forest(core):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(200, 6))
    model = IsolationForest(n_estimators=8, max_features=0.5, random_state=0).fit(X)
    forest = fk.from_sklearn(model)
    node = np.column_stack(
        [
            tree.apply(X[:, columns])
            for tree, columns in zip(model.estimators_, model.estimators_features_, strict=True)
        ]
    )
    expected = forest.leaf_index[node + forest.tree_offset[:-1]]
    np.testing.assert_array_equal(fk.apply(forest, X), expected)
    assert forest.in_bag.shape == (8, 200)


def test_apply_says_what_is_wrong(core):
    forest = fk.fit_forest([[0.0, 1.0], [1.0, 0.0]], [0, 1], 2, n_estimators=2)
    with pytest.raises(ValueError, match="2 features"):
        fk.apply(forest, np.zeros((3, 5)))


def loop_similarity(leaves_test, leaves_cal):
    """Return the similarity of the paper's algorithm: one pair after the other."""
    return np.array([[np.mean(a == b) for b in leaves_cal] for a in leaves_test])


def setting(rng, n_classes, n_trees=20, n_cal=120, n_test=30):
    y = rng.integers(0, n_classes, n_cal)
    Z = rng.normal(size=(n_cal, 5)) + y[:, None] * 0.3
    forest = fk.fit_forest(Z, y, n_classes, n_estimators=n_trees, random_state=1)
    rows = rng.normal(size=(n_test, 5)) + 0.3
    return forest, Z, y.astype(np.int32), rows


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_vote_equals_the_loop_over_pairs(core, n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    forest, Z, y, rows = setting(rng, n_classes)
    weight = rng.uniform(0.0, 2.0, len(y)) if weighted else np.ones(len(y))
    S = loop_similarity(fk.apply(forest, rows), fk.apply(forest, Z))
    expected = (S * weight) @ np.eye(n_classes)[y]
    leaves = fk.apply(forest, Z)
    mass = fk.leaf_class_mass(forest.n_leaves, leaves, y, n_classes, weight if weighted else None)
    total = fk.vote(forest, rows, mass)
    votes = total / forest.n_trees
    np.testing.assert_allclose(votes, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(mass.toarray().sum(), weight.sum() * forest.n_trees)
    np.testing.assert_array_equal(fk.vote(forest, rows, mass, n_jobs=2), total)
    single = np.vstack([fk.vote(forest, row[None], mass) for row in rows])
    np.testing.assert_allclose(single / forest.n_trees, votes, rtol=0, atol=1e-13)
    known = fk.vote_leaves(fk.apply(forest, rows), mass) / forest.n_trees
    np.testing.assert_allclose(known, votes, rtol=0, atol=1e-12)


def test_forest_survives_pickling(core):
    forest, _, _, rows = setting(np.random.default_rng(0), 2)
    before = fk.apply(forest, rows)
    copy = pickle.loads(pickle.dumps(forest))
    assert "packed" not in forest.__getstate__()
    np.testing.assert_array_equal(fk.apply(copy, rows), before)
    np.testing.assert_array_equal(fk.apply(replace(forest, in_bag=None), rows), before)


def test_leaf_numbers_are_dense(core):
    forest, _, _, _ = setting(np.random.default_rng(0), 2)
    leaves = forest.leaf_index[forest.leaf_index >= 0]
    np.testing.assert_array_equal(leaves, np.arange(forest.n_leaves))


@pytest.mark.parametrize("n_trees", [1, 3, 7, 9])
def test_first_trees_find_the_leaves_that_all_find(core, n_trees):
    X, y = continuous(np.random.default_rng(0))
    forest = fk.from_sklearn(RandomForestClassifier(7, random_state=0).fit(X, y))
    part = forest.first(n_trees)
    assert part.n_trees == min(n_trees, 7)
    np.testing.assert_array_equal(fk.apply(part, X), fk.apply(forest, X)[:, :n_trees])
