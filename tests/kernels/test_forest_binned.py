"""Forests on binned features, against loops written here and between the two cores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hetcal.kernels import native, use_core
from hetcal.kernels.binned_features import MISSING, bin_features
from hetcal.kernels.forest import apply, out_of_bag_means
from hetcal.kernels.forest_binned import BinnedForest

needs_core = pytest.mark.skipif(native() is None, reason="the compiled core was not built")
NODES = ("feature", "threshold", "left", "right", "missing_left", "tree_offset", "in_bag")
N = 90


@pytest.fixture(params=["pure", pytest.param("native", marks=needs_core)])
def core(request):
    with use_core(request.param):
        yield request.param


def items(seed=0, missing=0.15):
    """Features with ties and missing values, three classes, weights, groups of one to four rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 5))
    X[:, 1] = np.round(X[:, 1])
    y = (X[:, 0] + X[:, 1] + rng.normal(size=N) > 0).astype(int) + (X[:, 2] > 1)
    X[rng.random(X.shape) < missing] = np.nan
    weight = rng.uniform(0.5, 3.0, N)
    groups = np.sort(rng.integers(0, N // 3, N))
    return X, y, weight, np.unique(groups, return_inverse=True)[1]


def same_trees(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in NODES)


def grown(kind, options=None, seed=0, **forest_options):
    X, y, *_ = items(seed)
    engine = BinnedForest(6, random_state=seed, **forest_options)
    if kind == "values":
        targets = np.random.default_rng(9).normal(size=(N, 2))
        return engine.fit_values(bin_features(X), targets, **(options or {}))
    return engine.fit_classes(bin_features(X), np.minimum(y, kind - 1), kind, **(options or {}))


# -- bins ------------------------------------------------------------------------------------------


def test_few_values_have_a_bin_each():
    binned = bin_features([[2.0], [np.nan], [-1.0], [2.0], [7.0]])
    assert binned.codes.tolist() == [[1, MISSING, 0, 1, 2]]
    assert binned.low[0, :3].tolist() == binned.high[0, :3].tolist() == [-1.0, 2.0, 7.0]
    assert np.isnan(binned.low[0, 3:]).all()


def test_many_values_share_bins_of_about_equal_size():
    values = np.random.default_rng(0).lognormal(size=10_000)
    values[:3000] = 1.0  # one value that no bin can part
    binned = bin_features(values[:, None])
    sizes = np.bincount(binned.codes[0])
    tied = binned.codes[0, 0]
    assert len(sizes) <= 255
    assert sizes[tied] < 3000 + 2 * 10_000 / 255
    assert np.delete(sizes, tied).max() <= 2 * 10_000 / 255
    order = np.argsort(values, kind="stable")
    assert (np.diff(binned.codes[0, order].astype(int)) >= 0).all()
    low, high = binned.low[0, : len(sizes)], binned.high[0, : len(sizes)]
    assert (low <= high).all()
    assert (high[:-1] < low[1:]).all()


def test_rounded_values_stay_in_their_bins():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[::7, 1] = np.nan
    rounded = bin_features(X).rounded()
    assert np.array_equal(np.isnan(rounded), np.isnan(X))
    assert np.nanmax(np.abs(rounded - X)[np.abs(X) < 2]) < 0.05
    assert len(np.unique(rounded[:, 0])) == 255


def test_a_part_keeps_the_bins_and_columns_can_be_joined():
    X, *_ = items()
    binned = bin_features(X)
    part = binned.take(np.array([5, 1]))
    assert np.array_equal(part.codes, binned.codes[:, [5, 1]])
    both = bin_features(X[:, :2]).beside(bin_features(X[:, 2:]))
    assert np.array_equal(both.codes, binned.codes)
    assert np.array_equal(both.high, binned.high, equal_nan=True)
    with pytest.raises(ValueError, match="of 90 items; got 2"):
        binned.beside(part)


# -- splits ----------------------------------------------------------------------------------------


def best_split(X, targets, weight, least):
    """Try all thresholds, missing values left and right; return (gain, feature, who goes left)."""

    def scatter(rows):
        mean = np.average(targets[rows], axis=0, weights=weight[rows])
        return float(weight[rows] @ ((targets[rows] - mean) ** 2).sum(axis=1))

    best = (-1.0, None, None)
    for f in range(X.shape[1]):
        for cut in np.unique(X[~np.isnan(X[:, f]), f]):
            for with_missing in (False, True):
                left = np.where(np.isnan(X[:, f]), with_missing, cut >= X[:, f])
                if min(left.sum(), (~left).sum()) < least:
                    continue
                gain = scatter(np.arange(len(X))) - scatter(left) - scatter(~left)
                if gain > best[0] + 1e-9:
                    best = (gain, f, left)
    return best


@pytest.mark.parametrize("least", [1, 20])
@pytest.mark.parametrize("kind", [2, 3, "values"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_root_equals_the_loop_over_all_splits(core, kind, least, seed):
    X, y, weight, _ = items(seed)
    options = {"bootstrap": False, "max_features": None, "min_samples_leaf": least}
    forest = grown(kind, {"weight": weight}, seed, **options)
    if kind == "values":
        targets = np.random.default_rng(9).normal(size=(N, 2))
    else:
        targets = np.eye(kind)[np.minimum(y, kind - 1)]
    _, feature, left = best_split(X, targets, weight, least)
    assert forest.feature[0] == feature
    value = X[:, feature].astype(np.float32)
    goes = np.where(np.isnan(value), forest.missing_left[0] != 0, value <= forest.threshold[0])
    assert np.array_equal(goes, left)


def test_thresholds_lie_midway_between_the_values_of_the_node(core):
    forest = BinnedForest(1, bootstrap=False).fit_classes(
        bin_features([[1.0], [2.0], [4.0], [9.0]]), [0, 0, 1, 1], 2
    )
    assert forest.threshold[0] == 3.0


def test_missing_values_can_be_a_side_of_their_own(core):
    X = np.array([[1.0], [2.0], [np.nan], [3.0], [np.nan]])
    forest = BinnedForest(1, bootstrap=False).fit_classes(bin_features(X), [0, 0, 1, 0, 1], 2)
    leaves = apply(forest, np.array([[-9.0], [np.nan], [99.0]]))[:, 0]
    assert leaves[0] == leaves[2] != leaves[1]


@pytest.mark.parametrize("splitter", ["best", "random"])
def test_every_item_reaches_the_leaf_that_it_grew(core, splitter):
    """Leaves are pure by bins; if thresholds did not part the bins, rows would mix."""
    n_items = 60 if core == "pure" else 2000
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(n_items, 3)), rng.integers(0, 3, n_items)])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = rng.integers(0, 2, n_items)
    forest = BinnedForest(5, splitter=splitter).fit_classes(bin_features(X), y, 2)
    leaves = apply(forest, X)
    for t in range(forest.n_trees):
        seen = forest.in_bag[t] > 0
        of_first = np.bincount(leaves[seen, t], y[seen] == 0, forest.n_leaves)
        of_second = np.bincount(leaves[seen, t], y[seen] == 1, forest.n_leaves)
        assert (of_first * of_second == 0).all()


@pytest.mark.parametrize("splitter", ["best", "random"])
def test_leaves_hold_enough_items(core, splitter):
    X, _, weight, _ = items()
    forest = grown(2, {"weight": weight}, splitter=splitter, min_samples_leaf=7)
    leaves = apply(forest, X)
    assert forest.n_leaves > 2 * forest.n_trees
    for t in range(forest.n_trees):
        held = np.bincount(leaves[forest.in_bag[t] > 0, t])
        assert held[held > 0].min() >= 7


def test_random_thresholds_are_spread_over_the_range(core):
    X = np.linspace(0.0, 1.0, 101)[:, None]
    engine = BinnedForest(200 if core == "native" else 60, splitter="random", bootstrap=False)
    forest = engine.fit_classes(bin_features(X), (X[:, 0] > 0.37).astype(int), 2)
    roots = forest.threshold[forest.tree_offset[:-1]]
    assert abs(roots.mean() - 0.5) < 3 * np.sqrt(1 / 12 / len(roots))
    assert roots.min() < 0.1 < 0.9 < roots.max()


# -- what is drawn ---------------------------------------------------------------------------------


@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("kind", [2, 3])
def test_weights_are_repeated_rows(core, kind, splitter):
    """Where nothing is drawn, a row of weight 3 grows the trees that three rows grow."""
    X, y, *_ = items()
    times = np.random.default_rng(1).integers(1, 4, N)
    engine = BinnedForest(4, bootstrap=False, splitter=splitter)
    y = np.minimum(y, kind - 1)
    weighted = engine.fit_classes(bin_features(X), y, kind, weight=times.astype(float))
    rows = np.repeat(np.arange(N), times)
    repeated = engine.fit_classes(bin_features(X).take(rows), y[rows], kind)
    for name in ("feature", "threshold", "left", "right"):
        assert np.array_equal(getattr(weighted, name), getattr(repeated, name)), name


def test_heavy_rows_are_drawn_more_often(core):
    """In proportion to their weights, but never so often that no tree lacks them."""
    X, y, *_ = items()
    weight = np.ones(N)
    weight[0], weight[1] = 2.0, 500.0
    engine = BinnedForest(2000 if core == "native" else 60, max_features=1, min_samples_leaf=30)
    in_bag = engine.fit_classes(bin_features(X), y, 3, weight=weight).in_bag
    share = weight.copy()
    share[1] = 3 * 90 / 87  # three times the mean, itself included
    expected = N * share / share.sum()
    error = 5 * np.sqrt(expected / len(in_bag))
    assert (np.abs(in_bag.mean(axis=0) - expected) < error).all()
    assert (in_bag[:, 1] == 0).any() or core == "pure"
    np.testing.assert_allclose(share * engine.weight_per_draw(N, weight, None), weight)


def test_rows_of_a_group_keep_their_weights(core):
    weight, groups = np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1])
    per_draw = BinnedForest().weight_per_draw(3, weight, groups)
    np.testing.assert_allclose(per_draw, [0.5, 1.5, 1.0])


def test_groups_are_drawn_whole(core):
    X, y, _, groups = items()
    n_groups = groups.max() + 1
    engine = BinnedForest(200 if core == "native" else 30)
    in_bag = engine.fit_classes(bin_features(X), y, 3, groups=groups).in_bag
    times = np.stack([in_bag[:, groups == g].max(axis=1) for g in range(n_groups)], axis=1)
    assert np.array_equal(times[:, groups], in_bag)
    assert (times.sum(axis=1) == n_groups).all()
    assert abs((times == 0).mean() - np.exp(-1)) < 0.05


def test_out_of_bag_means_equal_the_loop(core):
    X, _, weight, groups = items()
    targets = np.random.default_rng(2).normal(size=(N, 2))
    engine = BinnedForest(12, min_samples_leaf=5)
    forest = engine.fit_values(bin_features(X), targets, weight=weight, groups=groups)
    leaves = apply(forest, X)
    per_draw = engine.weight_per_draw(N, weight, groups)
    found = out_of_bag_means(forest, leaves, targets, per_draw)
    for i in range(N):
        said = []
        for t in np.flatnonzero(forest.in_bag[:, i] == 0):
            mates = np.flatnonzero(leaves[:, t] == leaves[i, t])
            drawn = forest.in_bag[t, mates] * per_draw[mates]
            said.append(np.average(targets[mates], axis=0, weights=drawn))
        expected = np.mean(said, axis=0) if said else np.full(2, np.nan)
        np.testing.assert_allclose(found[i], expected)


# -- the same for everyone -------------------------------------------------------------------------

_, _, WEIGHT, GROUPS = items()
OPTIONS = {"weight": WEIGHT, "groups": GROUPS}


@needs_core
@pytest.mark.parametrize(
    ("kind", "splitter", "given"),
    [*itertools.product((2, 3, "values"), ("best", "random"), ((), ("weight",), tuple(OPTIONS)))],
)
def test_both_cores_grow_the_same_trees(kind, splitter, given):
    options = {name: OPTIONS[name] for name in given}
    compiled = grown(kind, options, splitter=splitter, min_samples_leaf=2)
    with use_core("pure"):
        assert same_trees(compiled, grown(kind, options, splitter=splitter, min_samples_leaf=2))


@needs_core
@pytest.mark.parametrize("kind", [2, 3, "values"])
def test_trees_do_not_depend_on_threads(kind):
    assert same_trees(grown(kind, n_jobs=1), grown(kind, n_jobs=4))


@needs_core
@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_do_not_depend_on_how_the_sums_are_kept(n_classes, splitter):
    """Classes without weights are counted in packed integers, with weights in real numbers."""
    X, y, *_ = items()
    binned, y = bin_features(X), np.minimum(y, n_classes - 1)
    engine = BinnedForest(20, bootstrap=False, splitter=splitter)
    packed = engine.fit_classes(binned, y, n_classes)
    real = engine.fit_classes(binned, y, n_classes, weight=np.full(N, 2.0))
    assert same_trees(packed, real)


@needs_core
@pytest.mark.parametrize("splitter", ["best", "random"])
def test_both_cores_grow_the_same_trees_on_many_items(splitter):
    """Small nodes of many items are read another way."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 7))
    X[rng.random(X.shape) < 0.1] = np.nan
    binned, y = bin_features(X), rng.integers(0, 3, 700)
    compiled = BinnedForest(2, splitter=splitter).fit_classes(binned, y, 3)
    with use_core("pure"):
        pure = BinnedForest(2, splitter=splitter).fit_classes(binned, y, 3)
    assert same_trees(compiled, pure)


@pytest.mark.parametrize("n_features", [4, 2100])  # the core holds few features more compactly
def test_missing_values_go_where_their_nodes_send_them(core, n_features):
    rng = np.random.default_rng(0)
    X = np.zeros((80, n_features))
    X[:, -4:] = rng.normal(size=(80, 4))
    X[:, -4:][rng.random((80, 4)) < 0.3] = np.nan
    y = np.where(np.isnan(X[:, -1]), 0.5, X[:, -1]) + np.nan_to_num(X[:, -2]) > 0
    forest = BinnedForest(5, max_features=n_features).fit_classes(bin_features(X), y * 1, 2)
    inner = forest.left >= 0
    assert set(forest.missing_left[inner]) == {0, 1}

    def leaf_of(tree, row):
        node = forest.tree_offset[tree]
        while forest.left[node] >= 0:
            value = np.float32(row[forest.feature[node]])
            left = forest.missing_left[node] if np.isnan(value) else value <= forest.threshold[node]
            node = forest.left[node] if left else forest.right[node]
        return forest.leaf_index[node]

    for rows in (X, X[:3]):
        expected = [[leaf_of(tree, row) for tree in range(5)] for row in rows]
        np.testing.assert_array_equal(apply(forest, rows), expected)


def test_other_seeds_grow_other_trees(core):
    X, y, *_ = items()
    forests = [
        BinnedForest(3, random_state=s).fit_classes(bin_features(X), y, 3) for s in (0, 0, 1)
    ]
    assert same_trees(forests[0], forests[1])
    assert not same_trees(forests[0], forests[2])
    assert len(np.unique(forests[0].in_bag, axis=0)) == 3


# -- what is refused -------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused(core):
    X, y, *_ = items()
    binned = bin_features(X)
    engine = BinnedForest(2)
    with pytest.raises(ValueError, match="BinnedForest: codes must have shape"):
        engine.fit_classes(binned, y[:-1], 3)
    with pytest.raises(ValueError, match=r"BinnedForest: codes must lie in \[0, 2\)"):
        engine.fit_classes(binned, y, 2)
    with pytest.raises(ValueError, match="BinnedForest: weight must be positive"):
        engine.fit_classes(binned, y, 3, weight=np.zeros(N))
    with pytest.raises(ValueError, match="BinnedForest: groups must lie in"):
        engine.fit_classes(binned, y, 3, groups=np.full(N, N))
    with pytest.raises(ValueError, match="BinnedForest: targets must have 90 rows"):
        engine.fit_values(binned, np.zeros((N - 1, 2)))
    with pytest.raises(ValueError, match="BinnedForest: targets must be finite"):
        engine.fit_values(binned, np.full((N, 2), np.nan))
    with pytest.raises(ValueError, match="splitter"):
        BinnedForest(splitter="worst")


FITTER = {
    "codes": np.zeros((2, 4), np.uint8),
    "low": np.zeros((2, 255), np.float32),
    "high": np.zeros((2, 255), np.float32),
    "labels": np.array([0, 1, 1, 0], np.int32),
    "n_classes": 2,
    "units": np.array([0, 0, 1, 2], np.int32),
    "n_units": 3,
    "up_to": np.empty(0),
    "weight": np.ones(4),
    "max_features": 1,
    "min_samples_leaf": 1.0,
    "bootstrap": True,
    "random_threshold": False,
}


@needs_core
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("codes", np.zeros((2, 0), np.uint8)),
        ("codes", np.zeros((0, 4), np.uint8)),
        ("codes", np.zeros((3, 4), np.uint8)),
        ("low", np.zeros((2, 254), np.float32)),
        ("high", np.zeros((1, 255), np.float32)),
        ("labels", np.array([0, 1, 2, 0], np.int32)),
        ("labels", np.array([0, 1, -1, 0], np.int32)),
        ("labels", np.zeros(3, np.int32)),
        ("n_classes", 1),
        ("n_classes", 2**40),
        ("units", np.array([0, 0, 1, 3], np.int32)),
        ("units", np.array([0, 0, -1, 2], np.int32)),
        ("n_units", 0),
        ("up_to", np.ones(4)),
        ("weight", np.array([1.0, 0.0, 1.0, 1.0])),
        ("weight", np.array([1.0, np.nan, 1.0, 1.0])),
        ("weight", np.ones(3)),
        ("max_features", 0),
        ("min_samples_leaf", np.nan),
        ("min_samples_leaf", -1.0),
    ],
)
def test_the_core_refuses_what_does_not_fit(name, value):
    with pytest.raises(ValueError, match=r"BinnedForestFitter: .*got"):
        native().BinnedForestFitter(**(FITTER | {name: value}))


@needs_core
def test_the_core_grows_on_any_bins():
    """Codes without values are nonsense, and must be no worse than that."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (3, 50)).astype(np.uint8)
    edges = np.full((3, 255), np.nan, np.float32)
    for splitter in (False, True):
        fitter = native().BinnedForestFitter(
            codes, edges, edges, rng.normal(size=(50, 2)), np.arange(50, dtype=np.int32), 50,
            np.arange(1.0, 51.0), np.ones(50), 9, 1.0, True, splitter,
        )  # fmt: skip
        seeds = np.arange(4, dtype=np.uint64)
        *_, offset = fitter.grow(seeds, np.zeros((4, 50), np.uint8), 1)
        assert (np.diff(offset) > 1).all()
        with pytest.raises(ValueError, match="in_bag must have shape"):
            fitter.grow(seeds, np.zeros((3, 50), np.uint8), 1)
