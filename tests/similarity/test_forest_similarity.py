"""Forest proximities against scikit-learn's leaves and a loop over pairs and trees."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, IsolationForest, RandomForestClassifier

from hetcal.kernels import core_name, use_core
from hetcal.kernels import forest as kernel
from hetcal.kernels.votes import Voters, VoteRule
from hetcal.similarity import ForestProximity, IsolationProximity

CORES = ["pure", "native"] if core_name() == "native" else ["pure"]
N, M, K = 60, 9, 3
TREES = 25


@pytest.fixture(params=CORES)
def core(request):
    with use_core(request.param):
        yield request.param


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(N + M, 4)).astype(np.float32).astype(np.float64)
    codes = (Z[:, 0] + rng.normal(size=N + M) > 0).astype(int) + (Z[:, 1] > 1)
    return Z[:N], codes[:N].astype(np.int64), Z[N:]


def shared_leaves(leaves, leaves_cal, counts=None):
    """The share of (counted) trees in which two items meet, pair by pair and tree by tree."""
    S = np.zeros((len(leaves), len(leaves_cal)))
    for t, own in enumerate(leaves):
        for i, other in enumerate(leaves_cal):
            trees = [b for b in range(len(own)) if counts is None or counts(t, i, b)]
            meets = sum(own[b] == other[b] for b in trees)
            S[t, i] = meets / len(trees) if trees else 0.0
    return S


def bootstrap_counts(forest, n):
    """How often each tree drew each item, from scikit-learn's own record."""
    return np.array([np.bincount(drawn, minlength=n) for drawn in forest.estimators_samples_])


def oracle(kind, Z, codes):
    model = RandomForestClassifier if kind == "random" else ExtraTreesClassifier
    return model(TREES, random_state=0, bootstrap=True, max_features="sqrt").fit(Z, codes)


@pytest.mark.parametrize("kind", ["random", "extra"])
def test_proximity_is_the_share_of_common_leaves(core, items, kind):
    Z, codes, new = items
    forest = oracle(kind, Z, codes)
    similarity = ForestProximity(TREES, trees=kind).fit(Z, codes)
    expected = shared_leaves(forest.apply(new), forest.apply(Z))
    np.testing.assert_allclose(similarity.pairwise(new), expected, atol=1e-15)


def test_hundred_trees_seed_0_is_the_papers_forest(core, items):
    Z, codes, new = items
    forest = RandomForestClassifier(100, random_state=0).fit(Z, codes)
    same = forest.apply(new)[:, None, :] == forest.apply(Z)[None]
    np.testing.assert_allclose(
        ForestProximity().fit(Z, codes).pairwise(new), same.mean(axis=2), atol=1e-15
    )


def test_isolation_proximity(core, items):
    Z, codes, new = items
    trees = IsolationForest(n_estimators=TREES, random_state=0, max_samples=16).fit(Z).estimators_
    leaves = [np.column_stack([tree.apply(part) for tree in trees]) for part in (new, Z)]
    similarity = IsolationProximity(TREES, max_samples=16).fit(Z, codes)
    np.testing.assert_allclose(similarity.pairwise(new), shared_leaves(*leaves), atol=1e-15)
    relabelled = IsolationProximity(TREES, max_samples=16).fit(Z, 1 - np.minimum(codes, 1))
    np.testing.assert_array_equal(similarity.pairwise(new), relabelled.pairwise(new))


def test_isolation_out_of_sample_is_leave_one_out(core, items):
    Z, codes, _ = items
    similarity = IsolationProximity(TREES).fit(Z, codes)
    S = similarity.out_of_sample_pairwise(slice(0, N))
    assert np.isneginf(np.diag(S)).all()
    off = ~np.eye(N, dtype=bool)
    np.testing.assert_allclose(S[off], similarity.pairwise(Z)[off], atol=1e-15)


def test_out_of_bag_voters(core, items):
    Z, codes, new = items
    forest = oracle("random", Z, codes)
    drawn = bootstrap_counts(forest, N)
    expected = shared_leaves(forest.apply(new), forest.apply(Z), lambda t, i, b: drawn[b, i] == 0)
    similarity = ForestProximity(TREES, voters="out-of-bag").fit(Z, codes)
    np.testing.assert_allclose(similarity.pairwise(new), expected, atol=1e-15)
    np.testing.assert_allclose(
        ForestProximity(TREES).fit(Z, codes).unbiased_pairwise(new), expected, atol=1e-15
    )
    voters = Voters(codes, K)
    np.testing.assert_allclose(
        similarity.vote(new, voters, VoteRule()).mass, expected @ np.eye(K)[codes], atol=1e-13
    )
    unbiased = ForestProximity(TREES).fit(Z, codes).unbiased_vote(new, voters, VoteRule())
    np.testing.assert_allclose(unbiased.mass, expected @ np.eye(K)[codes], atol=1e-13)
    np.testing.assert_allclose(unbiased.squared, (expected**2).sum(axis=1), atol=1e-13)


@pytest.mark.parametrize("voters", ["all", "out-of-bag"])
def test_out_of_sample_similarities_count_only_trees_without_the_item(core, items, voters):
    Z, codes, _ = items
    forest = oracle("random", Z, codes)
    drawn, leaves = bootstrap_counts(forest, N), forest.apply(Z)

    def counts(t, i, b):
        return drawn[b, t] == 0 and (voters == "all" or drawn[b, i] == 0)

    expected = shared_leaves(leaves, leaves, counts)
    np.fill_diagonal(expected, -np.inf)
    similarity = ForestProximity(TREES, voters=voters).fit(Z, codes)
    np.testing.assert_allclose(similarity.out_of_sample_pairwise(slice(0, N)), expected, atol=1e-6)
    np.testing.assert_allclose(
        similarity.out_of_sample_pairwise(slice(7, 20)), expected[7:20], atol=1e-6
    )
    votes = np.where(np.isfinite(expected), expected, 0) @ np.eye(K)[codes]
    predicted = similarity.out_of_sample_vote(Voters(codes, K), VoteRule())
    np.testing.assert_allclose(predicted.mass, votes, atol=1e-5)


def plain_vote(S, codes, rule, weight):
    """The vote written out item by item; a forest's nearest among equals is the first."""
    mass, support, squared = np.zeros((len(S), K)), np.zeros(len(S)), np.zeros(len(S))
    for t, row in enumerate(S):
        voting = sorted((i for i in range(len(row)) if row[i] > 0), key=lambda i: (-row[i], i))
        if rule.threshold is not None:
            voting = [i for i in voting if row[i] >= rule.threshold[t]] or voting[:1]
        if rule.n_neighbors is not None:
            voting = voting[: rule.n_neighbors]
        for i in voting:
            w = weight[i] * (1.0 if rule.uniform else row[i] ** rule.power)
            mass[t, codes[i]] += w
            support[t] += weight[i] * row[i]
            squared[t] += w * w
    return mass, support, squared


RULES = [
    VoteRule(),
    VoteRule(power=2.5),
    VoteRule(power=8.0),
    VoteRule(uniform=True),
    VoteRule(n_neighbors=5),
    VoteRule(n_neighbors=5, uniform=True),
    VoteRule(threshold=np.linspace(0, 1.1, M)),
    VoteRule(threshold=np.linspace(0, 1.1, M), n_neighbors=4, power=2.0),
]


@pytest.mark.parametrize("rule", RULES, ids=range(len(RULES)))
@pytest.mark.parametrize("weighted", [False, True])
def test_votes_equal_the_plain_loop(core, items, rule, weighted):
    Z, codes, new = items
    weight = np.random.default_rng(1).random(N) if weighted else np.ones(N)
    voters = Voters(codes, K, weight if weighted else None)
    similarity = ForestProximity(TREES).fit(Z, codes)
    mass, support, squared = plain_vote(similarity.pairwise(new), codes, rule, weight)
    for ballot in (similarity.vote(new, voters, rule), similarity.counted_vote(new, voters, rule)):
        np.testing.assert_allclose(ballot.mass, mass, atol=1e-13)
        np.testing.assert_allclose(ballot.support, support, atol=1e-12)
    np.testing.assert_allclose(ballot.squared, squared, atol=1e-12)


def test_neighbours_are_the_most_similar_in_order(core, items):
    Z, codes, new = items
    similarity = ForestProximity(TREES).fit(Z, codes)
    S = similarity.pairwise(new)
    found = similarity.neighbours(new, 8)
    for t, row in enumerate(S):
        expected = sorted(range(N), key=lambda i, row=row: (-row[i], i))[:8]
        expected = [i if row[i] > 0 else -1 for i in expected]
        assert found.index[t].tolist() == expected
    np.testing.assert_allclose(found.similarity, -np.sort(-S, axis=1)[:, :8], atol=1e-15)


@pytest.mark.parametrize("voters", ["all", "out-of-bag"])
def test_extended_items_count_like_items_unseen_by_every_tree(core, items, voters):
    Z, codes, new = items
    similarity = ForestProximity(TREES, voters=voters).fit(Z[:40], codes[:40])
    whole = ForestProximity(TREES, voters="all").fit(Z[:40], codes[:40])
    expected = whole.forest_
    similarity.vote(new, Voters(codes[:40], K), VoteRule())  # leaf sums that must be forgotten
    similarity.extend(Z[40:])
    assert similarity.n_items_ == N
    forest = RandomForestClassifier(TREES, random_state=0).fit(Z[:40], codes[:40])
    drawn = np.hstack([bootstrap_counts(forest, 40), np.zeros((TREES, 20), dtype=int)])
    assert expected.in_bag.shape == (TREES, 40)
    S = shared_leaves(
        forest.apply(new),
        forest.apply(Z),
        None if voters == "all" else lambda t, i, b: drawn[b, i] == 0,
    )
    np.testing.assert_allclose(similarity.pairwise(new), S, atol=1e-15)
    ballot = similarity.vote(new, Voters(codes, K), VoteRule())
    np.testing.assert_allclose(ballot.mass, S @ np.eye(K)[codes], atol=1e-12)


@pytest.mark.parametrize("trees", ["random", "extra"])
def test_with_missing_values_the_forest_is_the_binned_one(items, core, trees):
    Z, codes, new = items
    Z, new = Z.copy(), new.copy()
    Z[::7, 1] = new[0, 0] = np.nan  # in column 0 no calibration item lacks a value
    seed = np.random.RandomState(0).randint(2**31 - 1)
    splitter = {"random": "best", "extra": "random"}[trees]
    engine = kernel.BinnedForest(TREES, splitter=splitter, random_state=seed)
    forest = engine.fit_classes(kernel.bin_features(Z), codes, K)
    expected = shared_leaves(kernel.apply(forest, new), kernel.apply(forest, Z))
    S = ForestProximity(TREES, trees=trees).fit(Z, codes).pairwise(new)
    np.testing.assert_allclose(S, expected, atol=1e-15)


def test_missing_values_take_the_random_state(items):
    Z, codes, new = items
    Z = Z.copy()
    Z[::7, 1] = np.nan
    by_number, by_generator, other = (
        ForestProximity(TREES, random_state=state).fit(Z, codes).pairwise(new)
        for state in (3, np.random.RandomState(3), 4)
    )
    np.testing.assert_array_equal(by_number, by_generator)
    assert (by_number != other).any()


@pytest.mark.parametrize(
    "bad",
    [
        {"trees": "deep"},
        {"voters": "none"},
        {"n_estimators": 0},
        {"n_estimators": 2.5},
        {"max_features": "many"},
        {"min_samples_leaf": 0},
    ],
    ids=str,
)
def test_bad_parameters_are_refused_at_fit(items, bad):
    Z, codes, _ = items
    with pytest.raises(ValueError, match=next(iter(bad))):
        ForestProximity(**bad).fit(Z, codes)
