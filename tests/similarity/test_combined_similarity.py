"""The combination of two similarities: its endpoints, its blend, and the choice of its weight."""

import numpy as np
import pytest
from sklearn.base import clone

import hetcal
from hetcal.data import Folds
from hetcal.kernels.votes import Voters, VoteRule, vote_with_matrix
from hetcal.similarity import (
    CombinedSimilarity,
    CosineSimilarity,
    ForestProximity,
    RBFSimilarity,
)

N, M, K = 80, 7, 3


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(3)
    X, P = rng.normal(size=(N + M, 4)), rng.dirichlet(np.ones(K), size=N + M)
    codes = np.where(X[:, 0] > 0, P.argmax(axis=1), rng.integers(0, K, N + M))
    Z = np.hstack([X, P])
    return Z[:N], codes[:N], Z[N:]


def combined(weight):
    return CombinedSimilarity(
        ForestProximity(20), RBFSimilarity(bandwidth=0.5, scale=False), weight=weight
    )


def test_the_blend_is_the_weighted_sum_and_its_ends_are_the_parts(items):
    Z, codes, new = items
    on_x = ForestProximity(20).fit(Z[:, :-K], codes)
    on_p = RBFSimilarity(bandwidth=0.5, scale=False).fit(Z[:, -K:], codes)
    for a in (0.0, 0.3, 1.0):
        both = combined(a).fit(Z, codes, n_proba=K)
        expected = a * on_x.pairwise(new[:, :-K]) + (1 - a) * on_p.pairwise(new[:, -K:])
        np.testing.assert_allclose(both.pairwise(new), expected, atol=1e-14)
        unbiased = a * on_x.unbiased_pairwise(new[:, :-K]) + (1 - a) * on_p.pairwise(new[:, -K:])
        np.testing.assert_allclose(both.unbiased_pairwise(new), unbiased, atol=1e-14)
        rows = slice(10, 30)
        predicted = both.out_of_sample_pairwise(rows)
        own = np.isneginf(predicted)
        assert own.sum() == 20
        part = (
            a * on_x.out_of_sample_pairwise(rows)[~own]
            + (1 - a) * on_p.out_of_sample_pairwise(rows)[~own]
        )
        np.testing.assert_allclose(predicted[~own], part, atol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_weight_is_the_best_on_out_of_sample_predictions(items, weighted):
    Z, codes, _ = items
    weight = np.random.default_rng(0).random(N) if weighted else None
    both = combined("auto").fit(Z, codes, n_proba=K, sample_weight=weight)
    scores = {}
    for a in both.scores_:
        single = combined(a).fit(Z, codes, n_proba=K, sample_weight=weight)
        S = single.out_of_sample_pairwise(slice(0, N))
        mass = vote_with_matrix(S, Voters(codes, K, weight), VoteRule()).mass
        total = mass.sum(axis=1, keepdims=True)
        Q = np.where(total > 0, mass / np.where(total > 0, total, 1), 1 / K)
        scores[a] = np.average(((Q - np.eye(K)[codes]) ** 2).sum(axis=1), weights=weight)
    assert len(scores) == 11
    assert both.scores_ == pytest.approx(scores)
    assert both.weight_ == min(scores, key=scores.get)


def test_the_weight_follows_the_part_that_knows(items):
    Z, _, _ = items
    parts = CosineSimilarity(), RBFSimilarity(bandwidth=0.3)
    by_features = CombinedSimilarity(*parts).fit(Z, (Z[:, 0] > 0).astype(int), n_proba=K)
    by_proba = CombinedSimilarity(*parts).fit(Z, Z[:, -K:].argmax(axis=1), n_proba=K)
    assert by_features.weight_ > by_proba.weight_


def test_copies_of_an_item_do_not_choose_the_weight():
    """Features that only tell the rows of one event apart are of no use to another event."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 4)
    X, p = rng.normal(size=(40, 3))[groups], rng.random(40)[groups]
    codes = (rng.random(40) < p[::4]).astype(int)[groups]
    P = np.column_stack([1 - p, p])
    Z, near = np.hstack([X, P]), RBFSimilarity(bandwidth=0.3)
    alike = CombinedSimilarity(RBFSimilarity(bandwidth=0.5), near)
    by_rows = alike.fit(Z, codes, n_proba=2)
    for groups_given in (np.zeros(160, dtype=int), None):
        same = clone(alike).fit(Z, codes, n_proba=2, groups=groups_given)
        assert same.scores_ == by_rows.scores_
    by_groups = clone(alike).fit(Z, codes, n_proba=2, groups=groups)
    assert by_rows.weight_ > 0.5 > by_groups.weight_
    losses = np.empty(160)
    for kept, left_out in Folds.make(160, seed=0, groups=groups):
        S = clone(near).fit(P[kept], codes[kept]).pairwise(P[left_out])
        Q = S @ np.eye(2)[codes[kept]] / S.sum(axis=1, keepdims=True)
        losses[left_out] = ((Q - np.eye(2)[codes[left_out]]) ** 2).sum(axis=1)
    assert by_groups.scores_[0.0] == pytest.approx(losses.mean())
    calibrator = hetcal.SimilarityCalibrator(alike).fit(X, codes, y_proba=P, groups=groups)
    assert calibrator.similarity_.weight_ < 0.5
    assert calibrator.out_of_sample_proba_.shape == (160, 2)


@pytest.mark.parametrize("bad", [-0.1, 1.5, np.nan, "best"])
def test_bad_weights_are_refused(items, bad):
    Z, codes, _ = items
    with pytest.raises(ValueError, match=r"weight must be 'auto' or in \[0, 1\]"):
        combined(bad).fit(Z, codes, n_proba=K)


@pytest.mark.parametrize("n_proba", [0, 7])
def test_both_parts_are_needed(items, n_proba):
    Z, codes, _ = items
    with pytest.raises(ValueError, match="needs both features and probabilities"):
        combined(0.5).fit(Z, codes, n_proba=n_proba)


def test_extension_reaches_both_parts(items):
    Z, codes, new = items
    both = combined(0.4).fit(Z, codes, n_proba=K)
    before = both.pairwise(new)
    both.extend(new)
    assert both.n_items_ == N + M
    S = both.pairwise(new)
    np.testing.assert_allclose(S[:, :N], before)
    np.testing.assert_allclose(S[range(M), range(N, N + M)], 1.0)


@pytest.mark.parametrize("heard", [1, 2])
def test_groups_without_weight_have_no_say_in_the_weight_of_the_parts(heard):
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 40)
    X, y, p = rng.normal(size=(120, 3)), rng.integers(2, size=120), rng.uniform(0.2, 0.8, 120)
    similarity = CombinedSimilarity(ForestProximity(20), RBFSimilarity())
    calibrator = hetcal.SimilarityCalibrator(similarity=similarity)
    calibrator.fit(X, y, y_proba=p, sample_weight=1.0 * (groups < heard), groups=groups)
    assert 0 <= calibrator.similarity_.weight_ <= 1
