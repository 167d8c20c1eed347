"""The vote against a loop written out item by item."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetcal.kernels.votes import Ballot, Voters, VoteRule, vote_with_matrix, vote_with_neighbours


def plain_vote(S, codes, K, weight, rule):
    """One item after the other, as the paper writes it."""
    m, n = S.shape
    mass, support, squared = np.zeros((m, K)), np.zeros(m), np.zeros(m)
    for t in range(m):
        order = sorted((i for i in range(n) if S[t, i] > 0), key=lambda i: (-S[t, i], i))
        if rule.n_neighbors is not None:
            order = order[: rule.n_neighbors]
        if rule.threshold is not None:
            order = [i for i in order if S[t, i] >= rule.threshold[t]] or order[:1]
        # Any factor per row will do; with a power it is the most similar voter's.
        unit = S[t].max() if rule.power != 1 else 1.0
        for i in order:
            w = (1.0 if rule.uniform else (S[t, i] / unit) ** rule.power) * weight[i]
            mass[t, codes[i]] += w
            support[t] += S[t, i] * weight[i]
            squared[t] += w**2
    return mass, support, squared


RULES = [
    VoteRule(),
    VoteRule(power=2.5),
    VoteRule(n_neighbors=3),
    VoteRule(n_neighbors=4, uniform=True),
    VoteRule(n_neighbors=99),
    VoteRule(uniform=True),
    VoteRule(threshold=np.linspace(0.0, 1.2, 7)),
    VoteRule(threshold=np.linspace(0.0, 1.2, 7), n_neighbors=1),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_vote_equals_plain_loop(rule, weighted):
    rng = np.random.default_rng(0)
    S = rng.random((7, 12)).round(1)  # rounded: ties
    codes = rng.integers(0, 3, 12)
    weight = rng.random(12) if weighted else None
    ballot = vote_with_matrix(S, Voters(codes, 3, weight), rule)
    expected = plain_vote(S, codes, 3, np.ones(12) if weight is None else weight, rule)
    np.testing.assert_allclose(ballot.mass, expected[0], atol=1e-14)
    np.testing.assert_allclose(ballot.support, expected[1], atol=1e-14)
    np.testing.assert_allclose(ballot.squared, expected[2], atol=1e-14)


def test_threshold_keeps_the_most_similar_where_none_passes():
    S = np.array([[0.2, 0.5, 0.4], [0.9, 0.1, 0.6]])
    voters = Voters(np.array([0, 1, 0]), 2)
    ballot = vote_with_matrix(S, voters, VoteRule(threshold=np.array([0.8, 0.6])))
    np.testing.assert_allclose(ballot.mass, [[0.0, 0.5], [1.5, 0.0]])


def test_nobody_votes_with_a_similarity_of_zero():
    voters = Voters(np.array([0, 1, 0]), 2)
    for rule in (VoteRule(uniform=True), VoteRule(n_neighbors=2), VoteRule(threshold=np.ones(1))):
        ballot = vote_with_matrix(np.zeros((1, 3)), voters, rule)
        assert not ballot.mass.any()
        assert ballot.support[0] == 0


def test_large_powers_neither_overflow_nor_vanish():
    voters = Voters(np.array([0, 1, 0]), 2)
    for S in ([[1e9, 1e9, 1.0]], [[1e-9, 1e-9, 1e-12]]):
        mass = vote_with_matrix(np.array(S), voters, VoteRule(power=80.0)).mass
        np.testing.assert_allclose(mass / mass.sum(), [[0.5, 0.5]])


def test_minus_infinity_never_votes():
    S = np.array([[-np.inf, 0.5, 0.25]])
    for rule in (VoteRule(), VoteRule(uniform=True), VoteRule(n_neighbors=3)):
        assert vote_with_matrix(S, Voters(np.array([0, 1, 1]), 2), rule).mass[0, 0] == 0


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(2, 5), st.booleans())
def test_neighbour_list_and_matrix_give_the_same_vote(seed, K, uniform):
    rng = np.random.default_rng(seed)
    S = rng.random((4, 9))
    voters = Voters(rng.integers(0, K, 9), K, rng.random(9))
    rule = VoteRule(n_neighbors=3, uniform=uniform)
    order = np.argsort(-S, axis=1)[:, :3]
    listed = vote_with_neighbours(order, np.take_along_axis(S, order, axis=1), voters, rule)
    whole = vote_with_matrix(S, voters, rule)
    np.testing.assert_allclose(listed.mass, whole.mass, atol=1e-14)
    np.testing.assert_allclose(listed.support, whole.support, atol=1e-14)
    np.testing.assert_allclose(listed.effective_size, whole.effective_size, atol=1e-12)


def test_effective_size_counts_equal_votes_and_is_zero_without_voters():
    S = np.array([[0.5, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0]])
    ballot = vote_with_matrix(S, Voters(np.array([0, 1, 1, 0]), 2), VoteRule())
    np.testing.assert_allclose(ballot.effective_size, [3.0, 0.0])


def test_stacked_blocks_equal_the_whole():
    rng = np.random.default_rng(3)
    S, voters = rng.random((10, 6)), Voters(rng.integers(0, 2, 6), 2)
    whole = vote_with_matrix(S, voters, VoteRule())
    parts = Ballot.stack(
        [vote_with_matrix(S[a:b], voters, VoteRule()) for a, b in ((0, 4), (4, 10))]
    )
    np.testing.assert_array_equal(whole.mass, parts.mass)
    np.testing.assert_array_equal(whole.squared, parts.squared)
