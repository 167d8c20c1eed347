"""What every similarity promises: chunks equal the whole, threads change nothing, copies work."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from hetcal.kernels.votes import Voters, VoteRule, vote_with_matrix
from hetcal.similarity import (
    CallableSimilarity,
    CombinedSimilarity,
    CosineSimilarity,
    EuclideanSimilarity,
    ForestProximity,
    IsolationProximity,
    RBFSimilarity,
    base,
    make_similarity,
)

N, M, K = 50, 11, 2


def overlap(A, B):
    return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))


ALL = [
    ForestProximity(15),
    ForestProximity(15, trees="extra"),
    ForestProximity(15, voters="out-of-bag"),
    ForestProximity(15, min_samples_leaf=4, max_features=None),
    IsolationProximity(15),
    EuclideanSimilarity(),
    EuclideanSimilarity(duplicates="paper"),
    CosineSimilarity(),
    RBFSimilarity(),
    # Its own text holds the address of the function, another one in every process.
    pytest.param(CallableSimilarity(overlap), id="CallableSimilarity"),
    CombinedSimilarity(ForestProximity(15), RBFSimilarity()),
]


@pytest.fixture(params=ALL, ids=str)
def similarity(request):
    return clone(request.param)


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(N + M, 5))
    return Z[:N], (Z[:N, 0] + rng.normal(size=N) > 0).astype(np.int64), Z[N:]


RULES = [
    VoteRule(),
    VoteRule(power=3.0),
    VoteRule(n_neighbors=4),
    VoteRule(n_neighbors=4, uniform=True),
    VoteRule(threshold=np.linspace(0, 0.9, M)),
]


@pytest.mark.parametrize("rule", RULES, ids=range(len(RULES)))
def test_vote_is_the_vote_of_its_own_pairwise_similarities(similarity, items, rule):
    Z, codes, new = items
    similarity.fit(Z, codes, n_proba=2)
    ballot = similarity.vote(new, Voters(codes, K), rule)
    plain = vote_with_matrix(similarity.pairwise(new), Voters(codes, K), rule)
    shares = [b.mass / b.mass.sum(axis=1, keepdims=True) for b in (ballot, plain)]
    np.testing.assert_allclose(*shares, atol=1e-10)
    np.testing.assert_allclose(ballot.support, plain.support, rtol=1e-7)
    counted = similarity.counted_vote(new, Voters(codes, K), rule)
    np.testing.assert_allclose(counted.effective_size, plain.effective_size, rtol=1e-7)


def test_chunks_equal_the_whole(similarity, items, monkeypatch):
    Z, codes, new = items
    similarity.fit(Z, codes, n_proba=2)
    voters = Voters(codes, K)

    def everything():
        predicted = similarity.out_of_sample_vote(voters, VoteRule(power=2.0))
        unbiased = similarity.unbiased_vote(new, voters, RULES[-1])
        votes = similarity.heaviest(new, voters, RULES[-1], 5)
        return (
            *(similarity.vote(new, voters, rule).mass for rule in RULES),
            predicted.mass,
            unbiased.mass,
            unbiased.squared,
            votes.index,
            votes.share,
            similarity.neighbours(new, 3).similarity,
        )

    whole = everything()
    monkeypatch.setattr(base, "_CHUNK_NUMBERS", 3 * N)
    for before, after in zip(whole, everything(), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-300)


def test_out_of_sample_row_does_not_depend_on_its_own_label(similarity, items):
    """Flip one label: for a fixed forest, the vote on that item must stay as it was."""
    Z, codes, _ = items
    similarity.fit(Z, codes, n_proba=2)
    for rule in (VoteRule(), VoteRule(n_neighbors=3), VoteRule(power=2.0)):
        before = similarity.out_of_sample_vote(Voters(codes, K), rule).mass
        for i in (0, 13, 49):
            flipped = codes.copy()
            flipped[i] = 1 - flipped[i]
            after = similarity.out_of_sample_vote(Voters(flipped, K), rule).mass
            np.testing.assert_allclose(after[i], before[i], atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", RULES, ids=range(len(RULES)))
def test_heaviest_votes_add_up_to_the_vote(similarity, items, rule, weighted):
    Z, codes, new = items
    voters = Voters(codes, K, np.linspace(0.1, 5, N) if weighted else None)
    similarity.fit(Z, codes, n_proba=2)
    votes = similarity.heaviest(new, voters, rule, N)
    np.testing.assert_allclose(votes.share.sum(axis=1), 1, atol=1e-9)
    assert (np.diff(votes.share, axis=1) <= 1e-12).all()
    mass = similarity.vote(new, voters, rule).mass
    for k in range(K):
        of_class = np.where((votes.index >= 0) & (codes[votes.index] == k), votes.share, 0)
        np.testing.assert_allclose(of_class.sum(axis=1), mass[:, k] / mass.sum(axis=1), atol=1e-9)
    few = similarity.heaviest(new, voters, rule, 3)
    np.testing.assert_allclose(few.share, votes.share[:, :3], atol=1e-12)
    listed = np.take_along_axis(similarity.pairwise(new), few.index, 1) * (few.index >= 0)
    np.testing.assert_allclose(few.similarity, listed, rtol=1e-7, atol=1e-300)


def test_pickle_and_clone(similarity, items):
    Z, codes, new = items
    fresh = clone(similarity).fit(Z, codes, n_proba=2)
    mass = similarity.fit(Z, codes, n_proba=2).vote(new, Voters(codes, K), VoteRule()).mass
    np.testing.assert_array_equal(fresh.vote(new, Voters(codes, K), VoteRule()).mass, mass)
    loaded = pickle.loads(pickle.dumps(similarity))
    np.testing.assert_array_equal(loaded.vote(new, Voters(codes, K), VoteRule()).mass, mass)
    assert str(loaded.get_params()) == str(similarity.get_params())


@pytest.mark.parametrize("model", [ForestProximity, IsolationProximity])
def test_threads_change_nothing(items, model):
    Z, codes, new = items
    one, two = (model(15, n_jobs=n).fit(Z, codes) for n in (1, 2))
    np.testing.assert_array_equal(one.pairwise(new), two.pairwise(new))
    for rule in RULES:
        a, b = (s.vote(new, Voters(codes, K), rule) for s in (one, two))
        np.testing.assert_array_equal(a.mass, b.mass)


def test_nested_parameters():
    both = CombinedSimilarity(ForestProximity(), RBFSimilarity())
    both.set_params(on_features__n_estimators=7, on_proba__bandwidth=2.0, weight=0.5)
    assert both.get_params()["on_features__n_estimators"] == 7
    assert clone(both).on_proba.bandwidth == 2.0


def test_names_and_functions_make_similarities():
    assert make_similarity("extra-trees", random_state=3, n_jobs=2).get_params() == {
        **ForestProximity(trees="extra").get_params(),
        "random_state": 3,
        "n_jobs": 2,
    }
    given = RBFSimilarity(bandwidth=2.0)
    assert make_similarity(given) is not given
    assert make_similarity(overlap).function is overlap
    for bad in ("forrest", RBFSimilarity, 3, None):
        with pytest.raises(ValueError, match="similarity must be one of forest, extra-trees"):
            make_similarity(bad)
