"""Kernels refuse what does not fit together, and never touch memory that is not theirs.

Run under sanitizers by ``.ci/sanitize``, where a wrong read or write ends the process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from hetcal.kernels import forest as kernel
from hetcal.kernels import native, parallel, use_core
from hetcal.kernels._checks import check_starts
from hetcal.kernels.boosting import AdditiveTrees, Boosting
from hetcal.kernels.forest_fit import fit_forest
from hetcal.kernels.isotonic import pool_adjacent_violators
from hetcal.kernels.local_forests import _core_for, local_forest_scores
from hetcal.kernels.neighbourhoods import merge_overlapping, take_neighbourhoods

needs_core = pytest.mark.skipif(native() is None, reason="the compiled core was not built")
N, K, TREES = 60, 5, 10
RNG = np.random.default_rng(0)
Z = RNG.normal(size=(N, 3))
CODES = RNG.integers(0, K, N).astype(np.int32)
WRAPS = np.array([0, 2**63 - 1, -(2**63), -1])  # its differences overflow to positive numbers
EDGES = [-(2**31), -2, -1, 0, 1, N - 1, N, 255, 65_536, 2**31 - 1]


@pytest.fixture(params=["pure", pytest.param("native", marks=needs_core)])
def core(request):
    with use_core(request.param):
        yield request.param


@pytest.fixture
def forest(core):
    return fit_forest(Z, CODES, K, n_estimators=TREES)


@pytest.fixture
def leaves(forest):
    return kernel.apply(forest, Z)


@pytest.fixture
def index(forest, leaves):
    return kernel.build_index(forest.n_leaves, leaves)


def changed(forest, name, place, value):
    values = getattr(forest, name).copy()
    values[place] = value
    return dataclasses.replace(forest, **{name: values})


# -- forests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        *[("left", 0, v) for v in (0, -5, 2**31 - 1)],
        *[("right", 0, v) for v in (0, -1, 1, 2**31 - 1)],
        *[("feature", 0, v) for v in (-1, 3, 2**31 - 1)],
        *[("tree_offset", 0, v) for v in (1, -1)],
        *[("tree_offset", -1, v) for v in (0, 2**62)],
        ("tree_offset", 1, 0),
        ("tree_offset", slice(1, 4), WRAPS[1:]),
        ("leaf_index", slice(None), 2**31 - 1),
        ("leaf_index", slice(None), -1),
    ],
)
def test_a_forest_that_is_none(forest, name, place, value):
    with pytest.raises(ValueError, match=r"Forest: .*got"):
        kernel.apply(changed(forest, name, place, value), Z)


@needs_core
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1, -1, -1], [1, -1, -1]),  # a child with one parent twice, and one without
        ([1, 3, -1, -1, -1], [2, 2, -1, -1, -1]),  # a child of two, and one of nobody
        ([1, -1, -1], [2, 2, -1]),  # a leaf with a child
    ],
)
def test_nodes_of_boosted_trees_that_are_none(left, right):
    n = len(left)
    feature, value = np.zeros(n, np.int32), np.zeros(n)
    children = np.array(left, np.int32), np.array(right, np.int32)
    whole = np.zeros(n, np.uint8), value, np.array([0, n])
    with pytest.raises(ValueError, match=r"PackedBoosting: .* must .*; got"):
        native().PackedBoosting(feature, value, *children, *whole, 1)


@pytest.mark.parametrize("name", ["feature", "threshold", "right", "missing_left", "leaf_index"])
def test_a_forest_whose_arrays_differ_in_length(forest, name):
    with pytest.raises(ValueError, match=f"Forest: {name}"):
        kernel.apply(dataclasses.replace(forest, **{name: getattr(forest, name)[:-1]}), Z)


def test_a_forest_without_features(forest):
    with pytest.raises(ValueError, match="n_features"):
        kernel.apply(dataclasses.replace(forest, n_features=0), Z[:, :0])


@needs_core  # the twin reads the arrays themselves, and NumPy checks its indices
def test_a_forest_cannot_be_changed_after_its_check():
    with use_core("native"):
        forest = fit_forest(Z, CODES, K, n_estimators=TREES)
        before = kernel.apply(forest, Z)
        forest.left[:] = 2**30
        assert np.array_equal(kernel.apply(forest, Z), before)


@pytest.mark.parametrize(
    "mass",
    [
        kernel.LeafMass(2, np.ones((3, 2))),
        kernel.LeafMass(K, np.ones(4), WRAPS, np.zeros(4, np.int32)),
    ],
)
def test_leaf_sums_of_another_forest(forest, mass):
    with pytest.raises(ValueError, match="must"):
        kernel.vote(forest, Z, mass)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("indptr", slice(None, -1), -1),
        ("indptr", slice(1, -1), 2**40),
        ("classes", slice(None), K),
        ("classes", slice(None), -1),
        ("classes", slice(None), -(2**31)),
    ],
)
def test_sparse_leaf_sums_that_point_elsewhere(forest, leaves, name, place, value):
    mass = kernel.leaf_class_mass(forest.n_leaves, leaves, CODES, K)
    for rows in (Z, Z[:1]):
        with pytest.raises(ValueError, match=f"{name}.* must"):
            kernel.vote(forest, rows, changed(mass, name, place, value))


@pytest.mark.parametrize(
    "change",
    [
        {"n_leaves": 5},
        {"n_leaves": -1},
        {"leaves": np.full((N, 2), 2**31 - 1, np.int32)},
        {"codes": CODES + 10},
        {"codes": CODES - 9},
        {"codes": CODES[:3]},
        {"weight": np.ones(2)},
        {"weight": np.ones(N + 1)},
    ],
)
@pytest.mark.parametrize("n_classes", [3, K])  # stored in full, and by rows
def test_leaf_sums_of_items_that_do_not_fit(forest, leaves, change, n_classes):
    options = {"leaves": leaves, "codes": CODES % n_classes, "n_leaves": forest.n_leaves}
    with pytest.raises(ValueError, match=r"must|negative"):
        kernel.leaf_class_mass(**{**options, **change}, n_classes=n_classes)


def test_frequencies_of_leaves_that_are_not_there(forest, leaves):
    with pytest.raises(ValueError, match="leaves must"):
        kernel.leaf_frequencies(forest, leaves + 10**6, CODES, K)


# -- the leaf index --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("indptr", 0, 1),
        ("indptr", -1, 2**62),
        ("indptr", slice(1, 4), WRAPS[1:]),
        ("items", 0, N),
        ("items", -1, -1),
        ("items", slice(None), 0),
    ],
)
def test_an_index_that_is_none(index, leaves, name, place, value):
    with pytest.raises(ValueError, match=r"(LeafItems|LeafIndex): (indptr|items)"):
        kernel.pairwise(changed(index, name, place, value), kernel.queries_from_leaves(leaves))


def test_the_arrays_of_a_compiled_index_are_read_only(index, core):
    if core == "native":
        assert not index.items.flags.writeable
        assert not index.indptr.flags.writeable


@pytest.mark.parametrize("n_leaves", [3, -1])
def test_an_index_of_leaves_that_are_not_there(leaves, core, n_leaves):
    with pytest.raises(ValueError, match=r"must|negative"):
        kernel.build_index(n_leaves, leaves)


@pytest.mark.parametrize(
    "changes",
    [
        {"leaves": np.full((N, TREES), 10**6, np.int32)},
        {"n_trees": np.ones(3)},
        {"n_trees": np.zeros(N)},
        {"n_trees": np.full(N, np.nan)},
        {"left_out": np.zeros(2, np.int32)},
        {"left_out": np.full(N, 10**7, np.int32)},
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda index, queries: kernel.neighbour_vote(index, queries, CODES, K),
        lambda index, queries: kernel.top_items(index, queries, 3),
        kernel.pairwise,
    ],
)
def test_queries_that_do_not_fit(index, leaves, changes, ask):
    queries = dataclasses.replace(kernel.queries_from_leaves(leaves), **changes)
    with pytest.raises(ValueError, match="must"):
        ask(index, queries)


@pytest.mark.parametrize(
    "change",
    [
        {"codes": CODES[:2]},
        {"codes": CODES + 1000},
        {"codes": CODES - 1},
        {"weight": np.ones(3)},
        {"weight": np.ones(0)},
        {"n_neighbors": -1},
        {"threshold": np.nan},
        {"power": np.nan},
    ],
)
def test_votes_that_do_not_fit(index, leaves, change):
    queries = kernel.queries_from_leaves(leaves)
    with pytest.raises(ValueError, match="must"):
        kernel.neighbour_vote(index, queries, **{"codes": CODES, "n_classes": K, **change})


# -- sizes that do not fit their types -------------------------------------------------------------


def same_everywhere(n_trees, n_items=4):
    """All items share the one leaf of every tree."""
    leaves = np.tile(np.arange(n_trees, dtype=np.int32), (n_items, 1))
    return kernel.build_index(n_trees, leaves), kernel.queries_from_leaves(leaves[:1])


def test_counts_above_two_bytes(core):
    index, queries = same_everywhere(66_000)
    assert np.array_equal(kernel.pairwise(index, queries), np.ones((1, 4)))
    assert np.array_equal(kernel.top_items(index, queries, 2)[1], np.ones((1, 2)))
    votes = kernel.neighbour_vote(index, queries, np.array([0, 1, 1, 1]), 2, power=2.0)
    assert np.array_equal(votes.votes, [[1.0, 3.0]])


def test_more_classes_by_trees_than_a_histogram_may_have(core):
    """2**31 cells, of which the pure twin has none: votes go item by item."""
    index, queries = same_everywhere(1_000, 3)
    n_classes = 2**31 // 1_000 + 1
    codes = np.array([0, n_classes - 1, n_classes - 1])
    if core == "pure":  # its table of labels has a column per class
        n_classes, codes = 3, np.minimum(codes, 2)
    votes = kernel.neighbour_vote(index, queries, codes, n_classes, power=2.0).votes
    assert votes[0, 0] == 1.0
    assert votes[0, -1] == 2.0
    assert votes.sum() == 3.0


@needs_core
def test_more_items_than_int32_counts():
    leaves = np.empty((2**31, 0), np.int32)  # takes no memory
    with pytest.raises(ValueError, match="items must number"):
        native().LeafIndex.from_leaves(leaves, 1)


@needs_core
def test_more_values_than_32_bits_count():
    """Such data go to scikit-learn; decided without looking at them."""
    X = np.broadcast_to(np.float32(0), (65_000, 66_100))
    with pytest.warns(RuntimeWarning, match="values in X"):
        assert _core_for(X, 2) is None


def test_offsets_whose_differences_overflow():
    assert (np.diff(WRAPS) > 0).all()
    with pytest.raises(ValueError, match="must rise from 0 to -1"):
        check_starts("test", "indptr", WRAPS, -1)


# -- the other kernels -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "weights"),
    [
        (np.arange(50.0), np.ones(3)),
        (np.arange(3.0), np.ones(50)),
        (np.arange(3.0), np.zeros(3)),
        (np.full(3, np.nan), np.full(3, np.nan)),
    ],
)
def test_isotonic_weights(core, values, weights):
    with pytest.raises(ValueError, match="weights"):
        pool_adjacent_violators(values, weights)


def additive(**change):
    trees = {"column": np.zeros((2, 1, 3), np.int32), "threshold": np.zeros((2, 1, 3))}
    trees = {**trees, "value": np.zeros((2, 1, 4)), **change}
    return AdditiveTrees(np.arange(2), np.zeros(1), **trees)


@pytest.mark.parametrize(
    "change",
    [
        {"column": np.full((2, 1, 3), 99, np.int32)},
        {"column": np.full((2, 1, 3), -1, np.int32)},
        {"column": np.zeros((2, 1, 4), np.int32)},
        {"column": np.zeros((9, 1, 3), np.int32)},
        {"threshold": np.zeros((1, 1, 3))},
        {"value": np.zeros((1, 1, 4))},
        {"value": np.zeros((2, 1, 3))},
    ],
)
def test_boosted_trees_that_are_none(core, change):
    for rows in (Z, Z[:1]):
        with pytest.raises(ValueError, match=r"add_boosted_leaves: .* (must|have)"):
            additive(**change).predict_proba(rows)


@pytest.mark.parametrize(
    "change",
    [
        {"min_samples_leaf": 0},
        {"min_samples_leaf": -1},
        {"codes": CODES + K},
        {"codes": CODES - 1},
        {"codes": CODES[:3]},
        {"max_features": 0},
    ],
)
def test_fits_that_cannot_be(core, change):
    with pytest.raises(ValueError, match=r"codes|min_samples_leaf|max_features"):
        fit_forest(Z, **{"codes": CODES, "n_classes": K, "n_estimators": 2, **change})


@pytest.mark.parametrize("least", [10**6, 2**31 - 1])
def test_leaves_larger_than_the_data(core, least):
    assert fit_forest(Z, CODES, K, n_estimators=2, min_samples_leaf=least).n_leaves == 2


HOODS = {"indptr": np.array([0, 3, 5]), "indices": np.array([0, 1, 2, 3, 4])}


@pytest.mark.parametrize(
    "change",
    [
        {"indptr": np.array([0, 6, 5])},
        {"indptr": np.concatenate([WRAPS, [5]])},
        {"indptr": np.array([1, 5])},
        {"indptr": np.array([], np.int64)},
        {"indices": np.array([0, 1, 2, 3, N])},
        {"indices": np.array([0, 1, 2, 3, -1])},
        {"indices": np.array([0, 1, 1, 3, 4])},
        {"codes": CODES + 1},
        {"codes": CODES[1:]},
        {"alphas": [0.0, np.nan]},
        {"alphas": [np.nan]},
        {"alphas": []},
        {"alphas": [0.1, 0.1]},
        {"n_estimators": 0},
        {"X": Z[:, :0]},
    ],
)
def test_neighbourhoods_that_do_not_fit(core, change):
    data = {"X": Z, "codes": CODES, "n_classes": K, "P": np.full((N, K), 1 / K)}
    with pytest.raises(ValueError, match=r"must|same items"):
        local_forest_scores(**{**data, **HOODS, "n_estimators": 2, **change})


def test_lists_of_neighbourhoods():
    with pytest.raises(ValueError, match="indptr must"):
        take_neighbourhoods(np.concatenate([WRAPS, [5]]), np.arange(5), np.array([0]))
    with pytest.raises(ValueError, match="indices must"):
        merge_overlapping(np.array([0, 2]), np.array([0, 9]), 5)


# -- compiled functions called directly ------------------------------------------------------------


def compiled_calls():
    """Return calls of every compiled function that are right, by name: function and arguments."""
    core = native()
    forest = fit_forest(Z, CODES, K, n_estimators=TREES)
    leaves = kernel.apply(forest, Z)
    index = kernel.build_index(forest.n_leaves, leaves)
    mass = kernel.leaf_class_mass(forest.n_leaves, leaves, CODES, K)
    n_trees, ones = np.full(N, float(TREES)), np.ones(N)
    nodes = [getattr(forest, name) for name in ("feature", "threshold", "left", "right")]
    nodes += [forest.missing_left, forest.leaf_index, forest.tree_offset, 3]
    places = np.arange(N, dtype=np.int32)
    packed, rows = forest.packed, (leaves, n_trees, places, places // 2)
    fitter = core.ForestFitter(Z.astype(np.float32), CODES, K, 1, 1, True, False)
    bins = (Z.T > 0).astype(np.uint8)
    edges = np.zeros((3, 255), np.float32), np.ones((3, 255), np.float32)
    drawn = places // 2, N // 2, np.arange(1.0, N // 2 + 1), ones, 2, 1.0, True, True
    binned = [bins, *edges, CODES, K, *drawn]
    grown = np.zeros((2, 3), np.int32), np.zeros((2, 3), np.uint8), np.zeros((2, N), np.int32)
    hoods = HOODS["indptr"], HOODS["indices"]
    scored = *np.empty((2, 1, 2)), np.zeros((1, 2), np.int64), np.empty((1, len(hoods[1]), K))
    P, seeds, alphas = np.full((N, K), 1 / K), np.arange(3, dtype=np.uint32), np.array([0, 0.1])
    boosted = Boosting(n_rounds=2, depth=2).fit(Z, CODES)
    trees = boosted.column, boosted.threshold, boosted.value

    leafwise = [
        *(bins.T.copy(), np.ones((2, N), np.uint8), ones, np.ones(2), *np.ones((2, 2, 1, N))),
        *(2.0**30, 2.0**20, 1.0, 0.1, *np.zeros((2, 2, 1, 5), np.int32)),
        *(*np.zeros((2, 2, 1, 5), np.uint8), np.zeros((2, 1, 5)), np.zeros((2, 1, N)), 2),
    ]
    valued = [*nodes[:5], nodes[1], forest.tree_offset]

    def scores(X, codes, P, indptr, indices, seeds, alphas, threads, a, b, status, oob):
        floats = [a, b, *(np.empty((1, 2)) for _ in range(4))]
        how = seeds, alphas, False, True, threads, None, floats, status, oob
        core.local_forest_scores(X, codes, P, indptr, indices, *how)

    products = (Z @ Z.T).astype(np.float32)
    searched = core.NearestSearch(Z, None, 4, 0.01)
    searched.look_at(products, 0, 0)
    return {
        "PackedForest": (core.PackedForest, nodes),
        "apply": (packed.apply, [Z, np.empty_like(leaves), 2]),
        "vote_dense": (packed.vote_dense, [Z, mass.toarray(), np.zeros((N, K)), 2]),
        "vote_sparse": (
            packed.vote_sparse,
            [Z, mass.indptr, mass.classes, mass.values, np.zeros((N, K)), 2],
        ),
        "leaf_mass_dense": (
            core.leaf_mass_dense,
            [leaves, CODES, ones, np.zeros((forest.n_leaves, K))],
        ),
        "leaf_mass_sparse": (core.leaf_mass_sparse, [leaves, CODES, ones, forest.n_leaves, K]),
        "LeafIndex": (core.LeafIndex, [index.indptr, index.items, N, n_trees]),
        "from_leaves": (core.LeafIndex.from_leaves, [leaves, forest.n_leaves, n_trees]),
        "vote": (
            index.compiled.vote,
            [*rows, CODES, ones, np.zeros(N), ones[:1], 3, np.zeros((N, K)), np.zeros((N, 2)), 2],
        ),
        "nearest": (
            index.compiled.nearest,
            [*rows, np.empty((N, 4), np.int32), np.empty((N, 4)), 2],
        ),
        "pairwise": (index.compiled.pairwise, [*rows, np.zeros((N, N)), 2]),
        "pool_adjacent_violators": (core.pool_adjacent_violators, [Z[:, 0].copy(), ones, ones * 1]),
        "levels_with_one_added": (
            core.levels_with_one_added,
            [np.arange(N + 1.0), np.arange(N + 1.0) ** 2 / N, np.empty(N)],
        ),
        "nearest_items": (
            core.nearest_items,
            [Z, Z, True, np.empty((N, 4)), np.empty((N, 4), np.int64), 2],
        ),
        "NearestSearch": (core.NearestSearch, [Z, Z * 1, 4, 0.01]),
        "look_at": (core.NearestSearch(Z, None, 4, 0.01).look_at, [products, 0, 0]),
        "finish": (searched.finish, [np.empty((N, 4)), np.empty((N, 4), np.int64)]),
        "ForestFitter": (core.ForestFitter, [Z.astype(np.float32), CODES, K, 1, 1, True, False]),
        "grow": (fitter.grow, [seeds, np.empty((3, N), np.uint8), 2]),
        "BinnedForestFitter": (core.BinnedForestFitter, binned),
        "BinnedForestFitter, values": (core.BinnedForestFitter, [bins, *edges, Z, *drawn]),
        "grow, binned": (
            core.BinnedForestFitter(*binned).grow,
            [seeds.astype(np.uint64), np.empty((3, N), np.uint8), 2],
        ),
        "grow_boosted_trees": (
            core.grow_boosted_trees,
            [bins, np.arange(3, dtype=np.int32), *np.ones((2, 2, N)), 2, 1.0, 0.0, *grown, 2],
        ),
        "grow_leafwise_trees": (core.grow_leafwise_trees, leafwise),
        "PackedBoosting": (core.PackedBoosting, [*valued, 3]),
        "add": (core.PackedBoosting(*valued, 3).add, [Z, np.zeros((N, 2))]),
        "add_boosted_leaves": (core.add_boosted_leaves, [Z, *trees, np.zeros((N, K))]),
        "local_forest_scores": (
            scores,
            [Z.astype(np.float32), CODES[None, :], P, *hoods, seeds, alphas, 2, *scored],
        ),
    }


CALLS = [
    *("PackedForest", "apply", "vote_dense", "vote_sparse", "leaf_mass_dense", "leaf_mass_sparse"),
    *("LeafIndex", "from_leaves", "vote", "nearest", "pairwise", "pool_adjacent_violators"),
    *("BinnedForestFitter", "BinnedForestFitter, values", "grow, binned"),
    *("ForestFitter", "grow", "grow_boosted_trees", "add_boosted_leaves", "local_forest_scores"),
    *("grow_leafwise_trees", "PackedBoosting", "add", "nearest_items", "levels_with_one_added"),
    *("NearestSearch", "look_at", "finish"),
]


def odd_array(values, rng):
    """Return the array shorter, longer, with strides of its own, or with numbers at the edges."""
    kind = rng.integers(6)
    if kind == 0:
        return values[: rng.integers(len(values) + 1)]
    if kind == 1:
        return np.concatenate([values] * int(rng.integers(2, 4)))
    if kind == 2:
        return values[::-1]
    if kind == 3:
        return np.broadcast_to(values[:1], values.shape)
    if kind == 4 and values.ndim > 1:
        return np.ascontiguousarray(values[..., : rng.integers(values.shape[-1] + 1)])
    values = values.copy()
    edges = [np.nan, np.inf, -np.inf, -1, 0, 1e308] if values.dtype.kind == "f" else EDGES
    if values.dtype == np.int64:
        edges = [*EDGES, -(2**63), 2**63 - 1]
    for place in rng.integers(values.size, size=rng.choice([1, 3, values.size])):
        with np.errstate(over="ignore"):
            values.flat[place] = np.array(rng.choice(edges)).astype(values.dtype)
    return values


def odd(value, rng):
    if isinstance(value, np.ndarray):
        return odd_array(value, rng)
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return float(rng.choice([np.nan, np.inf, -1.0, 0.0]))
    return int(rng.choice([-(2**63), -1, 0, 1, 2, 7, 65_536, 2**21]))


@needs_core
def test_every_compiled_function_is_called():
    with use_core("native"):
        assert sorted(compiled_calls()) == sorted(CALLS)
        for function, arguments in compiled_calls().values():
            function(*arguments)
    public = {name for name in dir(native()) if not name.startswith("_")}
    called = {name.split(",")[0] for name in CALLS}
    inside = {"apply", "vote_dense", "vote_sparse", "from_leaves", "vote", "nearest", "pairwise"}
    without_arrays = {"use_vectors", "vectors"}  # see test_vectors.py
    assert public - without_arrays == called - inside - {"grow", "add", "look_at", "finish"}


@needs_core
def test_trees_with_room_for_half_a_split():
    with use_core("native"):
        function, arguments = compiled_calls()["grow_leafwise_trees"]
        arguments[10:15] = [values[:, :, :4].copy() for values in arguments[10:15]]
        with pytest.raises(ValueError, match="odd number of nodes"):
            function(*arguments)


@needs_core
@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments(name):
    """Called with one or two arguments changed, a function works or refuses; it never crashes."""
    with use_core("native"):
        function, arguments = compiled_calls()[name]
        for seed in range(int(os.environ.get("HETCAL_FUZZ", 60))):
            rng = np.random.default_rng(seed)
            given = list(arguments)
            for place in rng.integers(len(given), size=rng.integers(1, 3)):
                given[place] = odd(given[place], rng)
            # TypeError: not even the type of the argument is right
            with contextlib.suppress(ValueError, TypeError):
                function(*given)


FREE = {  # arguments that say how many there are of something, so that one more or less is fine
    ("leaf_mass_dense", 3),
    ("LeafIndex", 0),
    ("NearestSearch", 0),
    ("NearestSearch", 1),
    ("look_at", 0),
    ("grow_boosted_trees", 0),
    ("grow_boosted_trees", 1),
    ("local_forest_scores", 5),
    ("local_forest_scores", 6),
    ("local_forest_scores", 11),
}


@needs_core
@pytest.mark.parametrize("name", CALLS)
def test_arrays_that_shrink_and_grow_against_each_other(name):
    with use_core("native"):
        function, arguments = compiled_calls()[name]
        for place, value in enumerate(arguments):
            if not isinstance(value, np.ndarray) or (name, place) in FREE:
                continue
            for other in (value[:-1], np.concatenate([value, value[-1:]])):
                with pytest.raises(ValueError, match="must .*; got"):
                    function(*arguments[:place], other, *arguments[place + 1 :])


@needs_core
def test_values_that_lie_between_addresses():
    between = np.frombuffer(bytes(8 * N + 1), np.uint8)[1:].view(np.float64)
    with pytest.raises((ValueError, TypeError)):
        native().pool_adjacent_violators(between, np.ones(N), np.empty(N))


def between_addresses(values):
    """Return the same values where no processor expects them, as they come out of a message."""
    moved = np.frombuffer(b"x" + values.tobytes(), np.uint8)[1:].view(values.dtype)
    assert not moved.flags.aligned
    return moved.reshape(values.shape)


def test_a_forest_that_came_in_a_message(forest, leaves):
    moved = {
        name: between_addresses(getattr(forest, name))
        for name in ("feature", "threshold", "left", "right", "leaf_index", "tree_offset")
    }
    forest = dataclasses.replace(forest, **moved)
    assert np.array_equal(kernel.apply(forest, between_addresses(Z)), leaves)


@pytest.mark.parametrize("n_classes", [2, K])
def test_leaf_sums_that_came_in_a_message(forest, leaves, n_classes):
    mass = kernel.leaf_class_mass(forest.n_leaves, leaves, CODES % n_classes, n_classes)
    expected = kernel.vote(forest, Z, mass)
    arrays = {name: value for name, value in vars(mass).items() if isinstance(value, np.ndarray)}
    moved = {name: between_addresses(value) for name, value in arrays.items()}
    mass = dataclasses.replace(mass, **moved)
    assert np.array_equal(kernel.vote(forest, Z, mass), expected)
    again = pickle.loads(pickle.dumps(mass))
    assert set(vars(again)) == {field.name for field in dataclasses.fields(mass)}
    assert np.array_equal(kernel.vote(forest, Z, again), expected)


# -- threads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2, 4096, -1, None, 10**12])
def test_threads_are_capped_by_cores(n_jobs):
    assert 1 <= parallel.n_threads(n_jobs) <= parallel.cpu_count()


SCARCE = """
    import re, resource
    import numpy as np
    from hetcal.kernels import forest as kernel, parallel
    from hetcal.kernels.local_forests import local_forest_scores
    from hetcal.kernels.neighbourhoods import hellinger_balls
    parallel.cpu_count = lambda: 64
    rng = np.random.default_rng(0)
    X, y, P = rng.normal(size=(400, 3)), rng.integers(0, 2, 400), np.full((400, 2), 0.5)
    forest = kernel.fit_forest(X, y, 2, n_estimators=5)
    hoods = np.array([0, 100, 400]), np.arange(400)
    def work():
        seen = []
        leaves = kernel.apply(forest, np.tile(X, (100, 1)), n_jobs=64)
        scores = local_forest_scores(
            X, y, 2, P, *hoods, n_estimators=5, n_jobs=64, progress=lambda *n: seen.append(n)
        )
        assert seen[-1] == (2, 2)
        return leaves, scores.hh
    expected = work()
    used = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
    resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
    assert all(np.array_equal(a, b) for a, b in zip(work(), expected))
"""


@pytest.mark.processes
@needs_core
@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_without_a_thread_to_be_had():
    """Each thread wants a stack of 1 GB, 200 MB are left: the calling thread does the work."""
    import resource

    def large_stacks():
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 30, resource.RLIM_INFINITY))

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCARCE)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "HETCAL_CORE": "native"},
        preexec_fn=large_stacks,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
