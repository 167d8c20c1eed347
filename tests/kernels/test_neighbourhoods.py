from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetcal.kernels.neighbourhoods import (
    hellinger_balls,
    merge_overlapping,
    nearest_leader,
    simplex_net,
    take_neighbourhoods,
    three_decimal_buckets,
)


def random_proba(n, n_classes, seed, concentration=1.0):
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, concentration), n)


def hellinger(p, q):
    return np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2)


def sets(indptr, indices):
    return [set(indices[a:b].tolist()) for a, b in pairwise(indptr)]


@pytest.mark.parametrize(
    "n_classes", [2, 3, 10, 26]
)  # above 15 columns scikit-learn searches by brute force
@pytest.mark.parametrize("radius", [0.0, 0.1, 0.4, 1.5])
def test_balls_hold_what_a_loop_finds(n_classes, radius):
    P, centres = random_proba(80, n_classes, 0), random_proba(7, n_classes, 1)
    centres[0] = P[3]
    found = sets(*hellinger_balls(P, centres, radius))
    for ball, centre in zip(found, centres, strict=True):
        distance = np.array([hellinger(p, centre) for p in P])
        clear = np.abs(distance - radius) > 1e-7
        assert {i for i in np.flatnonzero(clear) if distance[i] < radius} <= ball
        assert ball <= {i for i in range(80) if distance[i] <= radius + 1e-7}


def test_an_item_on_the_rim_belongs_to_the_ball():
    P = np.array([[1.0, 0.0]])
    assert sets(*hellinger_balls(P, np.array([[0.0, 1.0]]), radius=1.0)) == [{0}]


@pytest.mark.parametrize("n_classes", [2, 26])
def test_order_is_that_of_single_queries(n_classes):
    from sklearn.neighbors import NearestNeighbors

    P, centres = random_proba(300, n_classes, 2), random_proba(9, n_classes, 3)
    search = NearestNeighbors(radius=0.3 * np.sqrt(2)).fit(np.sqrt(P))
    indptr, indices = hellinger_balls(P, centres, 0.3)
    for j, centre in enumerate(centres):
        expected = search.radius_neighbors(np.sqrt(centre).reshape(1, -1), return_distance=False)[0]
        np.testing.assert_array_equal(indices[indptr[j] : indptr[j + 1]], expected)


def test_infinite_radius_and_empty_input():
    P = random_proba(5, 3, 0)
    assert sets(*hellinger_balls(P, P[:2], np.inf)) == [set(range(5))] * 2
    assert sets(*hellinger_balls(P[:0], P[:2], 0.1)) == [set(), set()]
    assert sets(*hellinger_balls(P, P[:0], 0.1)) == []
    with pytest.raises(ValueError, match="radius must be non-negative"):
        hellinger_balls(P, P, -0.1)


def test_buckets_follow_a_dictionary_of_truncated_rows():
    P = np.round(random_proba(200, 2, 0), 2) + np.array([0.0004, -0.0004])
    first, bucket = three_decimal_buckets(P)
    seen: dict[tuple, int] = {}
    for i, row in enumerate(P):
        key = tuple((row * 1000).astype(int))
        decides = seen.setdefault(key, i)
        assert first[bucket[i]] == decides
    assert first.tolist() == list(seen.values())
    assert [len(a) for a in three_decimal_buckets(P[:0])] == [0, 0]


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), n_classes=st.integers(2, 5), spacing=st.floats(0.005, 0.3))
def test_net_covers_and_separates_and_ignores_order(seed, n_classes, spacing):
    P = random_proba(60, n_classes, seed)
    leaders = simplex_net(P, spacing)
    apart = [hellinger(a, b) for i, a in enumerate(leaders) for b in leaders[:i]]
    assert all(d > spacing - 1e-9 for d in apart)
    assert all(min(hellinger(p, leader) for leader in leaders) <= spacing + 1e-9 for p in P)
    shuffled = np.random.default_rng(seed).permutation(np.vstack([P, P[:7]]))
    np.testing.assert_array_equal(simplex_net(shuffled, spacing), leaders)


def test_net_of_many_chunks_is_the_greedy_one():
    P = np.linspace(0, 1, 2001)[:, None] * np.array([1.0, -1.0]) + np.array([0.0, 1.0])
    leaders = simplex_net(P, 0.01)
    greedy: list[np.ndarray] = []
    for row in P:
        if all(hellinger(row, leader) > 0.01 for leader in greedy):
            greedy.append(row)
    np.testing.assert_array_equal(leaders, greedy)
    assert len(leaders) <= 112


def test_nearest_leader_is_the_nearest_within_the_spacing():
    leaders, P = simplex_net(random_proba(50, 3, 0), 0.1), random_proba(40, 3, 1, 0.3)
    cell = nearest_leader(leaders, P, 0.1)
    for p, c in zip(P, cell, strict=True):
        distance = [hellinger(p, leader) for leader in leaders]
        assert c == (np.argmin(distance) if min(distance) <= 0.1 else -1)
    assert (cell == -1).any()
    assert nearest_leader(leaders[:0], P).tolist() == [-1] * 40


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), overlap=st.sampled_from([0.3, 0.6, 0.9, 1.0]))
def test_merging_follows_the_loop(seed, overlap):
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(rng.random(12) < rng.choice([0.0, 0.5, 0.9])) for _ in range(15)]
    indptr = np.concatenate([[0], np.cumsum([len(m) for m in members])])
    kept, group = merge_overlapping(indptr, np.concatenate(members), 12, overlap=overlap)

    def jaccard(a, b):
        union = set(a) | set(b)
        return len(set(a) & set(b)) / len(union) if union else 1.0

    expected: list[int] = []
    for j, mine in enumerate(members):
        likeness = [jaccard(mine, members[k]) for k in expected]
        if likeness and max(likeness) >= overlap:
            assert group[j] == int(np.argmax(likeness))
        else:
            assert group[j] == len(expected)
            expected.append(j)
    assert kept.tolist() == expected


def test_take_selects_whole_neighbourhoods():
    P = random_proba(40, 3, 0)
    indptr, indices = hellinger_balls(P, P[:6], 0.3)
    which = np.array([4, 1, 1])
    whole = sets(indptr, indices)
    assert sets(*take_neighbourhoods(indptr, indices, which)) == [whole[4], whole[1], whole[1]]
