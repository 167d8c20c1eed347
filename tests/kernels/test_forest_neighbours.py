"""Votes of similar items, nearest items and out-of-bag votes against loops over pairs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetcal.kernels import forest as fk
from hetcal.kernels import use_core
from hetcal.kernels._backend import native

CORES = ["pure"] if native() is None else ["pure", "native"]


@pytest.fixture(params=CORES)
def core(request):
    with use_core(request.param):
        yield request.param


@cache
def setting(core, n_classes, n_trees, n_cal):
    """Return what tests of many options ask about, grown once by each core."""
    return Setting(n_classes, n_trees, n_cal)


class Setting:
    """A forest, its calibration items, and rows to ask about."""

    def __init__(self, n_classes=3, n_trees=25, n_cal=90, n_test=40, seed=0):
        rng = np.random.default_rng(seed)
        self.K = n_classes
        self.y = rng.integers(0, n_classes, n_cal).astype(np.int32)
        self.Z = rng.normal(size=(n_cal, 4)) + 0.4 * self.y[:, None]
        self.forest = fk.fit_forest(
            self.Z, self.y, n_classes, n_estimators=n_trees, random_state=seed
        )
        self.rows = rng.normal(size=(n_test, 4)) + 0.4
        self.leaves = fk.apply(self.forest, self.Z)
        self.index = fk.build_index(self.forest.n_leaves, self.leaves)
        self.threshold = rng.uniform(0.0, 1.1, n_test)
        self.weight = rng.uniform(0.1, 2.0, n_cal)
        self.S = loop_similarity(fk.apply(self.forest, self.rows), self.leaves)


def loop_similarity(leaves_test, leaves_cal):
    return np.array([[np.mean(a == b) for b in leaves_cal] for a in leaves_test])


def loop_vote(S, y, K, threshold=None, power=1.0, weight=None, n_neighbors=None):
    """Return votes, support and squares, row by row as the paper's algorithm says it."""
    n = len(S)
    threshold = np.zeros(n) if threshold is None else threshold
    weight = np.ones(len(y)) if weight is None else weight
    votes, support, squares = np.zeros((n, K)), np.zeros(n), np.zeros(n)
    for r, s in enumerate(S):
        order = sorted((i for i in range(len(y)) if s[i] > 0), key=lambda i: (-s[i], i))
        kept = [i for i in order if s[i] >= threshold[r]]
        if not kept and order:
            kept = order[:1]
        for i in kept[:n_neighbors]:
            ballot = weight[i] * s[i] ** power
            votes[r, y[i]] += ballot
            support[r] += weight[i] * s[i]
            squares[r] += ballot**2
    return votes, support, squares


def assert_votes(result, expected):
    np.testing.assert_allclose(result.votes, expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.support, expected[1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.squares, expected[2], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize(("n_trees", "n_cal"), [(25, 90), (300, 20)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"power": 8.0},
        {"power": 0.0, "n_neighbors": 10},
        {"threshold": True},
        {"threshold": True, "weight": True, "power": 2.0},
        {"threshold": True, "weight": True, "n_neighbors": 3},
    ],
)
def test_thresholded_vote_equals_the_loop(core, options, n_trees, n_cal, n_classes):
    s = setting(core, n_classes, n_trees, n_cal)
    options = {k: getattr(s, k) if v is True else v for k, v in options.items()}
    result = fk.thresholded_vote(s.forest, s.index, s.rows, s.y, s.K, **options)
    assert_votes(result, loop_vote(s.S, s.y, s.K, **options))
    again = fk.thresholded_vote(s.forest, s.index, s.rows, s.y, s.K, n_jobs=3, **options)
    np.testing.assert_array_equal(again.votes, result.votes)


def test_threshold_is_met_by_equality(core):
    s = Setting()
    exact = s.S.max(axis=1)
    result = fk.thresholded_vote(s.forest, s.index, s.rows, s.y, s.K, threshold=exact)
    assert_votes(result, loop_vote(s.S, s.y, s.K, threshold=exact))


def test_big_leaves(core):
    """Trees of two or three leaves each: most items share a leaf with every row."""
    rng = np.random.default_rng(3)
    Z = np.c_[rng.random(700) < 0.5, rng.random(700) < 0.1].astype(float)
    y = (rng.random(700) < 0.3 + 0.4 * Z[:, 0]).astype(np.int32)
    forest = fk.fit_forest(Z, y, 2, n_estimators=30)
    leaves = fk.apply(forest, Z)
    index = fk.build_index(forest.n_leaves, leaves)
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    S = loop_similarity(fk.apply(forest, rows), leaves)
    for options in ({}, {"threshold": np.full(4, 0.5)}, {"power": 3.0}):
        result = fk.thresholded_vote(forest, index, rows, y, 2, **options)
        expected = loop_vote(S, y, 2, **options)
        np.testing.assert_allclose(result.votes, expected[0], rtol=1e-13)
        np.testing.assert_allclose(result.squares, expected[2], rtol=1e-13)


def test_bit_sets_of_big_leaves_between_small_ones(core):
    """A big leaf's bits are found by its number, which is not its place among the big ones."""
    n, n_trees = 2000, 6
    rng = np.random.default_rng(5)
    sizes = np.array([3, 900, 1, 40, 1000, 2, 54])  # big and small leaves in turns
    within = np.repeat(np.arange(len(sizes)), sizes)
    leaves = np.column_stack([rng.permutation(within) + len(sizes) * t for t in range(n_trees)])
    y = rng.integers(0, 3, n).astype(np.int32)
    index = fk.build_index(len(sizes) * n_trees, leaves.astype(np.int32))
    rows = leaves[:40].astype(np.int32)
    rows[0] = [1, 11, 15, 25, 32, 36]  # as many items as there are: counted as bits
    S = loop_similarity(rows, leaves)
    result = fk.neighbour_vote(index, fk.queries_from_leaves(rows), y, 3, threshold=0.2)
    assert_votes(result, loop_vote(S, y, 3, threshold=np.full(40, 0.2)))
    np.testing.assert_array_equal(fk.pairwise(index, fk.queries_from_leaves(rows)), S)


@pytest.mark.parametrize("counts_for_row", [[1, 1, 1], [0, 1, 1], [0, 0, 1]])
def test_leaves_of_every_size(core, counts_for_row):
    n = 6000  # all items in a leaf, 5000 and 1000 of them, and a few
    rng = np.random.default_rng(0)
    leaves = np.column_stack([np.zeros(n), 1 + (np.arange(n) % 6 == 0), 3 + np.arange(n) // 7])
    y = rng.integers(0, 3, n).astype(np.int32)
    index = fk.build_index(int(leaves.max()) + 1, leaves.astype(np.int32))
    rows = np.where(counts_for_row, leaves[[0, 1, -1]], -1).astype(np.int32)
    S = (rows[:, None, :] == leaves).sum(axis=2) / sum(counts_for_row)
    for first, second, weight in ((2.0, 8.0, None), (1.0, 3.0, rng.uniform(0.5, 2.0, n))):
        votes = fk.neighbour_votes(
            index, fk.queries_from_leaves(rows), y, 3, (first, second), weight=weight
        )
        for power, cast in zip((first, second), votes, strict=True):
            assert_votes(cast, loop_vote(S, y, 3, power=power, weight=weight))


def test_without_threshold_it_is_the_plain_vote(core):
    s = Setting()
    mass = fk.leaf_class_mass(s.forest.n_leaves, s.leaves, s.y, s.K)
    plain = fk.vote(s.forest, s.rows, mass) / s.forest.n_trees
    result = fk.thresholded_vote(s.forest, s.index, s.rows, s.y, s.K)
    np.testing.assert_allclose(result.votes, plain, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.support, plain.sum(axis=1), rtol=0, atol=1e-12)


def test_several_powers_come_from_one_search(core):
    s = Setting()
    powers = (2.0, 0.0, 8.0)
    queries = fk.queries_from_leaves(fk.apply(s.forest, s.rows))
    for options in ({}, {"weight": s.weight}, {"threshold": s.threshold}, {"n_neighbors": 3}):
        cast = fk.neighbour_votes(s.index, queries, s.y, s.K, powers, **options)
        for power, result in zip(powers, cast, strict=True):
            alone = fk.neighbour_vote(s.index, queries, s.y, s.K, power=power, **options)
            for part in ("votes", "support", "squares"):
                np.testing.assert_array_equal(getattr(result, part), getattr(alone, part))


def test_nothing_similar_gives_a_row_of_zeros(core):
    s = Setting()
    nowhere = np.full((2, s.forest.n_trees), -1, dtype=np.int32)
    result = fk.neighbour_vote(s.index, fk.queries_from_leaves(nowhere), s.y, s.K, threshold=0.5)
    assert not result.votes.any()
    assert not result.support.any()


def test_no_rows(core):
    s = Setting()
    result = fk.thresholded_vote(s.forest, s.index, s.rows[:0], s.y, s.K)
    assert result.votes.shape == (0, s.K)
    assert fk.top_items(s.index, fk.queries_from_leaves(s.leaves[:0]), 3)[0].shape == (0, 3)


@pytest.mark.parametrize("top", [1, 5, 200])
def test_top_items_equals_sorting(core, top):
    s = Setting()
    queries = fk.queries_from_leaves(fk.apply(s.forest, s.rows))
    items, similarity = fk.top_items(s.index, queries, top)
    assert items.shape == similarity.shape == (len(s.rows), top)
    for r, row in enumerate(s.S):
        expected = sorted((i for i in range(len(row)) if row[i] > 0), key=lambda i: (-row[i], i))
        expected = expected[:top]
        found = items[r][items[r] >= 0]
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(similarity[r][: len(found)], row[expected], atol=1e-15)
        assert not similarity[r][len(found) :].any()


def test_pairwise_equals_the_loop(core):
    s = Setting()
    queries = fk.queries_from_leaves(fk.apply(s.forest, s.rows))
    np.testing.assert_allclose(fk.pairwise(s.index, queries), s.S, rtol=0, atol=1e-15)


def loop_out_of_bag(s, sense):
    """Return the similarity of each calibration item to each other one, counted out of bag."""
    n, counted = len(s.y), s.forest.in_bag == 0
    S = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            trees = counted[:, i if sense == "query" else j]
            if i != j and trees.any():
                S[i, j] = np.mean(s.leaves[i, trees] == s.leaves[j, trees])
    return S


@pytest.mark.parametrize("sense", ["query", "voter"])
@pytest.mark.parametrize("n_trees", [3, 25])
def test_out_of_bag_votes_equal_the_loop(core, sense, n_trees):
    s = Setting(n_trees=n_trees, n_cal=60)
    S = loop_out_of_bag(s, sense)
    index, queries = fk.out_of_bag_pair(s.forest, s.leaves, sense)
    np.testing.assert_allclose(fk.pairwise(index, queries), S, rtol=0, atol=1e-15)
    threshold = np.random.default_rng(0).uniform(0, 0.6, len(s.y))
    for options in ({}, {"weight": s.weight, "power": 2.0}, {"threshold": threshold}):
        result = fk.out_of_bag_vote(s.forest, s.leaves, s.y, s.K, sense=sense, **options)
        assert_votes(result, loop_vote(S, s.y, s.K, **options))
    for weight in (None, s.weight):
        total = fk.out_of_bag_sum(s.forest, s.leaves, s.y, s.K, sense=sense, weight=weight)
        expected = loop_vote(S, s.y, s.K, weight=weight)[0]
        np.testing.assert_allclose(total, expected, rtol=0, atol=1e-12)
        assert np.array_equal(total > 0, expected > 0)


def test_out_of_bag_voters_for_new_rows(core):
    s = Setting()
    counted = s.forest.in_bag == 0
    leaves = fk.apply(s.forest, s.rows)
    S = np.zeros((len(leaves), len(s.y)))
    for r, a in enumerate(leaves):
        for j, b in enumerate(s.leaves):
            S[r, j] = np.mean(a[counted[:, j]] == b[counted[:, j]])
    mass = fk.voter_mass(s.forest, s.leaves, s.y, s.K, s.weight)
    votes = fk.vote(s.forest, s.rows, mass) / s.forest.n_trees
    np.testing.assert_allclose(votes, (S * s.weight) @ np.eye(s.K)[s.y], rtol=0, atol=1e-12)
    index = fk.build_index(
        s.forest.n_leaves, fk.out_of_bag_leaves(s.forest, s.leaves), voters="counted"
    )
    result = fk.thresholded_vote(s.forest, index, s.rows, s.y, s.K, threshold=s.threshold)
    assert_votes(result, loop_vote(S, s.y, s.K, threshold=s.threshold))


def test_out_of_bag_needs_a_bootstrap(core):
    s = Setting()
    forest = fk.fit_forest(s.Z, s.y, s.K, n_estimators=3, bootstrap=False)
    with pytest.raises(ValueError, match="bootstrap=True"):
        fk.out_of_bag_vote(forest, fk.apply(forest, s.Z), s.y, s.K)
    with pytest.raises(ValueError, match='"query" or the "voter"'):
        fk.out_of_bag_vote(s.forest, s.leaves, s.y, s.K, sense="both")


@pytest.mark.skipif(native() is None, reason="the compiled core was not built")
@settings(max_examples=30)
@given(
    seed=st.integers(0, 10_000),
    n_cal=st.integers(1, 200),
    n_leaves=st.integers(1, 12),
    n_trees=st.integers(1, 280),
    power=st.sampled_from([0.0, 1.0, 1.5]),
    by_item=st.booleans(),
)
def test_native_equals_pure_on_any_leaves(seed, n_cal, n_leaves, n_trees, power, by_item):
    rng = np.random.default_rng(seed)
    first = n_leaves * np.arange(n_trees)
    leaves = (rng.integers(0, n_leaves, (n_cal, n_trees)) + first).astype(np.int32)
    rows = (rng.integers(0, n_leaves, (9, n_trees)) + first).astype(np.int32)
    leaves[rng.random(leaves.shape) < 0.2] = -1
    rows[rng.random(rows.shape) < 0.2] = -1
    y = rng.integers(0, 3, n_cal).astype(np.int32)
    options = {"threshold": rng.uniform(0, 0.4, 9), "power": power}
    results = []
    for choice in ("pure", "native"):
        with use_core(choice):
            index = fk.build_index(
                n_leaves * n_trees, leaves, voters="counted" if by_item else "all"
            )
            queries = fk.queries_from_leaves(rows, np.arange(9) % n_cal)
            result = fk.neighbour_vote(index, queries, y, 3, **options)
            results.append((result, fk.pairwise(index, queries), fk.top_items(index, queries, 4)))
    (a, S, near), (b, T, close) = results
    assert_votes(a, (b.votes, b.support, b.squares))
    np.testing.assert_array_equal(S, T)
    np.testing.assert_array_equal(near[0], close[0])
    np.testing.assert_array_equal(near[1], close[1])


@pytest.mark.parametrize("n_items", [65_536, 65_537])
def test_items_beyond_sixteen_bits(core, n_items):
    rng = np.random.default_rng(0)
    leaves = np.column_stack([rng.permutation(n_items) % 5000 + 5000 * t for t in range(4)])
    index = fk.build_index(20_000, leaves.astype(np.int32))
    rows = np.r_[leaves[[0, 1, n_items - 1]], [[-1, 5001, -1, 19_999]]].astype(np.int32)
    y = (np.arange(n_items) % 3).astype(np.int32)
    S = (rows[:, None] == leaves).sum(axis=2) / np.maximum((rows >= 0).sum(axis=1), 1)[:, None]
    result = fk.neighbour_vote(index, fk.queries_from_leaves(rows), y, 3, power=2.0)
    np.testing.assert_allclose(result.votes, S**2 @ np.eye(3)[y], rtol=1e-12)
    np.testing.assert_allclose(result.support, S.sum(axis=1), rtol=1e-12)
