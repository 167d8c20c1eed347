"""Metric similarities against a loop over pairs, and their rules for duplicates and scales."""

import numpy as np
import pytest
from scipy import sparse

from hetcal.kernels.votes import Voters, VoteRule
from hetcal.similarity import (
    CallableSimilarity,
    CosineSimilarity,
    EuclideanSimilarity,
    PrecomputedSimilarity,
    RBFSimilarity,
)

N, M = 30, 6


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(2)
    Z = rng.normal([0, 5, -3], [1, 10, 0.1], size=(N + M, 3))
    return Z[:N], rng.integers(0, 2, N), Z[N:]


def by_pairs(function, A, B):
    return np.array([[function(a, b) for b in B] for a in A])


def scaled(Z, new):
    mean, spread = Z.mean(axis=0), Z.std(axis=0)
    return (Z - mean) / spread, (new - mean) / spread


def distance(a, b):
    return float(np.sqrt(((a - b) ** 2).sum()))


@pytest.mark.parametrize("scale", [False, True])
def test_euclidean(items, scale):
    Z, codes, new = items
    A, B = (new, Z) if not scale else scaled(Z, new)[::-1]
    expected = by_pairs(lambda a, b: 1 / distance(a, b), A, B)
    similarity = EuclideanSimilarity(scale=scale).fit(Z, codes)
    np.testing.assert_allclose(similarity.pairwise(new), expected, rtol=1e-9)


@pytest.mark.parametrize("scale", [False, True])
def test_cosine(items, scale):
    Z, codes, new = items
    A, B = (new, Z) if not scale else scaled(Z, new)[::-1]
    expected = by_pairs(lambda a, b: (a @ b / np.linalg.norm(a) / np.linalg.norm(b) + 1) / 2, A, B)
    S = CosineSimilarity(scale=scale).fit(Z, codes).pairwise(new)
    np.testing.assert_allclose(S, expected, atol=1e-12)
    assert S.min() >= 0
    assert S.max() <= 1


@pytest.mark.parametrize("bandwidth", [0.5, "median"])
def test_rbf(items, bandwidth):
    Z, codes, new = items
    B, A = scaled(Z, new)
    h = bandwidth
    if bandwidth == "median":
        h = np.median([distance(B[i], B[j]) for i in range(N) for j in range(i)])
    similarity = RBFSimilarity(bandwidth=bandwidth).fit(Z, codes)
    assert similarity.bandwidth_ == pytest.approx(h)
    expected = by_pairs(lambda a, b: np.exp(-(distance(a, b) ** 2) / (2 * h * h)), A, B)
    np.testing.assert_allclose(similarity.pairwise(new), expected, rtol=1e-9, atol=1e-15)


def test_median_bandwidth_counts_a_repeated_item_once(items):
    Z, codes, _ = items
    once = RBFSimilarity(scale=False).fit(Z, codes)
    repeated = RBFSimilarity(scale=False).fit(np.vstack([Z, Z[:7], Z[:7]]), None)
    assert repeated.bandwidth_ == pytest.approx(once.bandwidth_)


def test_items_that_are_all_equal_are_still_compared():
    Z = np.ones((5, 2))
    for similarity in (EuclideanSimilarity(), RBFSimilarity(), CosineSimilarity()):
        S = similarity.fit(Z, None).pairwise(Z)
        assert np.isfinite(S).all()
        assert np.ptp(S) == 0


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, "wide"])
def test_rbf_refuses_a_bad_bandwidth(items, bad):
    with pytest.raises(ValueError, match="bandwidth must be 'median' or a positive number"):
        RBFSimilarity(bandwidth=bad).fit(items[0])


def test_duplicates_by_floor_outweigh_all_but_keep_the_order_of_the_rest(items):
    Z, codes, _ = items
    similarity = EuclideanSimilarity(scale=False).fit(Z, codes)
    S = similarity.pairwise(Z)
    between = [distance(Z[i], Z[j]) for i in range(N) for j in range(i)]
    np.testing.assert_allclose(np.diag(S), 1e6 / np.median(between))
    for i in range(N):
        near = np.argsort([distance(Z[i], z) for z in Z], kind="stable")
        assert np.argsort(-S[i], kind="stable").tolist() == near.tolist()
        assert S[i, i] > 100 * np.delete(S[i], i).sum()


def test_duplicates_as_published_leave_nothing_for_the_others():
    Z, new = np.array([[0.0], [1.0], [1.0], [4.0]]), np.array([[1.0], [2.0]])
    S = EuclideanSimilarity(scale=False, duplicates="paper").fit(Z, None).pairwise(new)
    np.testing.assert_allclose(S, [[0, 1, 1, 0], [0.5, 1, 1, 0.5]], atol=1e-300)
    # SBA fills its places with arbitrary others, SBAW gives them nothing.
    similarity = EuclideanSimilarity(scale=False, duplicates="paper").fit(Z, None)
    voters, new = Voters(np.array([0, 1, 1, 0]), 2), np.array([[1.0]])
    uniform = similarity.vote(new, voters, VoteRule(n_neighbors=3, uniform=True))
    np.testing.assert_allclose(uniform.mass, [[1, 2]])
    weighted = similarity.vote(new, voters, VoteRule(n_neighbors=3))
    np.testing.assert_allclose(weighted.mass, [[0, 2]], atol=1e-300)
    assert weighted.support[0] == 2


def test_duplicates_rule_must_be_known(items):
    with pytest.raises(ValueError, match="duplicates must be 'floor' or 'paper'; got 'drop'"):
        EuclideanSimilarity(duplicates="drop").fit(items[0])


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("threshold", [None, 0.6, 50.0])
def test_nearest_few_by_index_equal_the_whole_matrix(items, uniform, threshold):
    Z, codes, new = items
    limit = None if threshold is None else np.full(M, threshold)
    rule = VoteRule(n_neighbors=4, uniform=uniform, threshold=limit)
    similarity = EuclideanSimilarity().fit(Z, codes)
    voters = Voters(codes, 2, np.linspace(0.1, 3, N))
    quick = similarity.vote(new, voters, rule)
    slow = super(EuclideanSimilarity, similarity).vote(new, voters, rule)
    for name in ("mass", "support", "squared"):
        np.testing.assert_allclose(getattr(quick, name), getattr(slow, name), rtol=1e-7)
    own = VoteRule(n_neighbors=4, uniform=uniform)
    np.testing.assert_allclose(
        similarity.out_of_sample_vote(voters, own).mass,
        super(EuclideanSimilarity, similarity).out_of_sample_vote(voters, own).mass,
        rtol=1e-6,
    )


@pytest.mark.parametrize(
    "similarity",
    [EuclideanSimilarity(scale=False), CosineSimilarity(scale=False), RBFSimilarity(scale=False)],
    ids=str,
)
def test_sparse_equals_dense(items, similarity):
    Z, codes, new = (np.where(np.abs(a) > 1, a, 0) if a.ndim == 2 else a for a in items)
    voters, rule = Voters(codes, 2), VoteRule(n_neighbors=5)
    dense = similarity.fit(Z, codes)
    S, mass = dense.pairwise(new), dense.vote(new, voters, rule).mass
    lean = similarity.fit(sparse.csr_array(Z), codes)
    np.testing.assert_allclose(lean.pairwise(sparse.csr_array(new)), S, rtol=1e-7)
    np.testing.assert_allclose(lean.vote(sparse.csr_array(new), voters, rule).mass, mass, rtol=1e-7)


def test_sparse_is_scaled_but_not_centred(items):
    Z, codes, new = items
    similarity = RBFSimilarity(bandwidth=1.0).fit(sparse.csr_array(Z), codes)
    spread = Z.std(axis=0)
    expected = by_pairs(lambda a, b: np.exp(-(distance(a, b) ** 2) / 2), new / spread, Z / spread)
    np.testing.assert_allclose(similarity.pairwise(sparse.csr_array(new)), expected, atol=1e-9)


def test_extension_keeps_what_was_learned(items):
    Z, codes, new = items
    for similarity in (RBFSimilarity(), EuclideanSimilarity(), CosineSimilarity()):
        before = similarity.fit(Z[:20], codes[:20]).pairwise(new)
        similarity.extend(Z[20:] * 3)
        assert similarity.n_items_ == N
        np.testing.assert_array_equal(similarity.pairwise(new)[:, :20], before)
        np.testing.assert_allclose(
            similarity.pairwise(Z[20:] * 3)[0, 20], similarity.pairwise(Z[:1])[0, 0]
        )
    near = EuclideanSimilarity().fit(Z[:20], codes[:20])
    near.extend(new)
    assert near.neighbours(new, 1).index.ravel().tolist() == list(range(20, 20 + M))


def overlap(A, B):
    return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))


def test_callable(items):
    Z, codes, new = items
    similarity = CallableSimilarity(overlap).fit(Z, codes)
    np.testing.assert_array_equal(similarity.pairwise(new), overlap(new, Z))
    predicted = similarity.out_of_sample_pairwise(slice(3, 8))
    assert np.isneginf(predicted[range(5), range(3, 8)]).all()
    assert np.isfinite(predicted).sum() == 5 * (N - 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: overlap(A, B).T, r"returned shape \(30, 6\); expected \(6, 30\)"),
        (lambda A, B: overlap(A, B)[:, 0], r"returned shape \(6,\); expected \(6, 30\)"),
        (lambda A, B: -overlap(A, B), "returned -.*not negative. For distances"),
        (lambda A, B: overlap(A, B) * np.nan, "returned nan"),
        (lambda A, B: overlap(A, B) * np.inf, "returned inf"),
        (lambda A, B: overlap(A, B) + 1e200, "returned 1e[+]200"),
    ],
)
def test_callable_with_bad_values_is_refused(items, function, message):
    Z, codes, new = items
    with pytest.raises(ValueError, match=message):
        CallableSimilarity(function).fit(Z, codes).pairwise(new)


def test_precomputed(items):
    Z, codes, new = items
    similarity = PrecomputedSimilarity().fit(overlap(Z, Z), codes)
    np.testing.assert_array_equal(similarity.pairwise(overlap(new, Z)), overlap(new, Z))
    before = similarity.Z_.copy()
    similarity.out_of_sample_vote(Voters(codes, 2), VoteRule())
    np.testing.assert_array_equal(similarity.Z_, before)
    with pytest.raises(NotImplementedError, match="cannot be extended. Fit anew"):
        similarity.extend(new)
    with pytest.raises(ValueError, match="29 columns but there are 30 calibration items"):
        similarity.pairwise(overlap(new, Z)[:, 1:])
    with pytest.raises(ValueError, match="holds nan"):
        similarity.pairwise(overlap(new, Z) * np.nan)


def test_precomputed_refuses_what_is_no_square_of_similarities(items):
    Z, codes, new = items
    with pytest.raises(ValueError, match=r"must be square; got shape \(6, 30\)"):
        PrecomputedSimilarity().fit(overlap(new, Z), codes)
    with pytest.raises(ValueError, match="Pass augment=None"):
        PrecomputedSimilarity().fit(overlap(Z, Z), codes, n_proba=2)
    with pytest.raises(ValueError, match="holds -1.0"):
        PrecomputedSimilarity().fit(-np.ones((4, 4)), None)


def test_weights_and_a_constant_column_give_no_warning():
    # The weighted variance of these rows rounds to a negative number.
    rng = np.random.default_rng(0)
    for _ in range(50):
        Z = np.full((120, 26), rng.dirichlet(np.ones(26)))
        similarity = EuclideanSimilarity().fit(Z, sample_weight=rng.random(120) * 1e80)
        assert np.isfinite(similarity.pairwise(Z[:2])).all()


def test_cosines_of_sparse_items_in_files_of_before_are_not_centred(items):
    """Their predictions stay as they were."""
    Z, codes, new = items
    similarity = CosineSimilarity().fit(sparse.csr_array(Z), codes)
    scale = similarity.scaler_.scale_
    plain = by_pairs(
        lambda a, b: (a @ b / np.linalg.norm(a) / np.linalg.norm(b) + 1) / 2, new / scale, Z / scale
    )
    assert np.abs(similarity.pairwise(sparse.csr_array(new)) - plain).max() > 0.01
    del similarity.centre_
    np.testing.assert_allclose(similarity.pairwise(sparse.csr_array(new)), plain, atol=1e-12)
