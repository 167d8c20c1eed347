"""Out-of-sample predictions by brute force: refits without the item, loops over unseen trees."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from hetcal import SimilarityCalibrator, get_calibrator
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.kernels import core_name, use_core
from hetcal.similarity import (
    CosineSimilarity,
    EuclideanSimilarity,
    ForestProximity,
    IsolationProximity,
    RBFSimilarity,
)

CORES = ["pure", "native"] if core_name() == "native" else ["pure"]


def draw(seed=0, n=40, K=3):
    rng = np.random.default_rng(seed)
    X, P = rng.normal(size=(n, 3)), rng.dirichlet(np.ones(K), size=n)
    y = np.where(X[:, 0] > 0, P.argmax(axis=1), rng.integers(0, K, n))
    y[: 2 * K] = np.tile(np.arange(K), 2)
    return X, y, P


# Nothing is standardised here: what a refit would learn anew from the features is given.
NEIGHBOURS = {
    "sba": SimilarityCalibrator(
        EuclideanSimilarity(scale=False), n_neighbors=5, weights="uniform", augment="proba"
    ),
    "sbaw": SimilarityCalibrator(EuclideanSimilarity(scale=False), n_neighbors=5, augment="proba"),
    "published sba": get_calibrator("sba", preset="paper", n_neighbors=5),
    "published sbaw": get_calibrator("sbaw", preset="paper", n_neighbors=5),
    "everyone": SimilarityCalibrator(EuclideanSimilarity(scale=False), augment="proba"),
    "rbf": SimilarityCalibrator(RBFSimilarity(bandwidth=0.7, scale=False), augment="proba"),
    "cosine": SimilarityCalibrator(CosineSimilarity(scale=False), augment=None, power=3.0),
    "callable": SimilarityCalibrator(
        lambda A, B: 1 / (1 + np.abs(A[:, None] - B[None]).sum(axis=2)), augment="proba"
    ),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_refits_without_the_item(name, weighted):
    X, y, P = draw()
    weight = np.random.default_rng(1).random(len(y)) if weighted else np.ones(len(y))
    calibrator = clone(NEIGHBOURS[name]).set_params(classes=[0, 1, 2])
    options = {"sample_weight": weight} if weighted else {}
    predicted = calibrator.fit(X, y, y_proba=P, **options).out_of_sample_proba_
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        part = {"sample_weight": weight[rest]} if weighted else {}
        refit = clone(calibrator).fit(X[rest], y[rest], y_proba=P[rest], **part)
        expected = refit.predict_proba(X[i : i + 1], y_proba=P[i : i + 1])[0]
        np.testing.assert_allclose(predicted[i], expected, atol=1e-7, err_msg=f"item {i}")


def test_published_rule_does_not_take_an_item_for_its_own_duplicate():
    X = np.array([[0.0], [1.0], [1.0], [3.0], [4.5], [7.0]])
    y, P = np.array([0, 1, 0, 1, 1, 0]), np.full((6, 2), 0.5)
    sbaw = get_calibrator("sbaw", preset="paper", n_neighbors=2).fit(X, y, y_proba=P)
    # Items 1 and 2 are each other's duplicates; item 3 has item 4 and one of them beside it.
    np.testing.assert_allclose(sbaw.out_of_sample_proba_[1:4, 1], [0, 1, 1])


def test_leave_one_out_among_duplicates():
    X, y, P = draw()
    X[:12], P[:12] = X[0], P[0]
    sbaw = clone(NEIGHBOURS["sbaw"]).set_params(n_neighbors=4).fit(X, y, y_proba=P)
    # All four neighbours of a duplicate are duplicates other than itself.
    share = np.bincount(y[:12], minlength=3)
    for i in range(12):
        votes = 4 * sbaw.out_of_sample_proba_[i]
        assert votes.sum() == pytest.approx(4)
        assert (votes <= share - (np.arange(3) == y[i]) + 1e-9).all()


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("kind", ["random", "extra"])
@pytest.mark.parametrize("voters", ["all", "out-of-bag"])
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_out_of_bag_equals_a_loop_over_trees(core, kind, voters, power):
    X, y, P = draw(n=50)
    n_trees = 30
    with use_core(core):
        calibrator = SimilarityCalibrator(
            ForestProximity(n_trees, trees=kind, voters=voters), augment="proba", power=power
        ).fit(X, y, y_proba=P)
        predicted = calibrator.out_of_sample_proba_
    model = RandomForestClassifier if kind == "random" else ExtraTreesClassifier
    forest = model(n_trees, random_state=0, bootstrap=True).fit(np.hstack([X, P]), y)
    leaves = forest.apply(np.hstack([X, P]))
    seen = np.array([np.bincount(s, minlength=len(y)) > 0 for s in forest.estimators_samples_])
    for i in range(len(y)):
        votes = np.zeros(3)
        for j in range(len(y)):
            if j == i:
                continue
            counted = [
                b
                for b in range(n_trees)
                if not seen[b, i] and not (voters == "out-of-bag" and seen[b, j])
            ]
            if counted:
                s = sum(leaves[i, b] == leaves[j, b] for b in counted) / len(counted)
                votes[y[j]] += s**power
        np.testing.assert_allclose(predicted[i], votes / votes.sum(), atol=1e-6)


def test_isolation_leave_one_out_equals_a_loop():
    X, y, P = draw()
    calibrator = SimilarityCalibrator(IsolationProximity(20)).fit(X, y, y_proba=P)
    Z = calibrator.space_.transform(X, calibrator.scores_)
    S = calibrator.similarity_.pairwise(Z)
    np.fill_diagonal(S, 0)
    votes = S @ np.eye(3)[y]
    np.testing.assert_allclose(
        calibrator.out_of_sample_proba_, votes / votes.sum(axis=1, keepdims=True), atol=1e-12
    )


@pytest.mark.parametrize("similarity", ["forest", "euclidean", "rbf"])
def test_groups_that_share_rows_and_random_labels_tell_nothing(similarity):
    """Each group is one row eight times with one random label: any leak predicts it."""
    rng = np.random.default_rng(0)
    n_groups = 60
    groups = np.repeat(np.arange(n_groups), 8)
    label = rng.integers(0, 2, n_groups)
    X, y = rng.normal(size=(n_groups, 3))[groups], label[groups]
    P = np.full((len(y), 2), 0.5)
    options = {"n_neighbors": 5} if similarity == "euclidean" else {}
    calibrator = SimilarityCalibrator(similarity, **options)

    def brier(Q):
        return ((Q - np.eye(2)[y]) ** 2).sum(axis=1).mean()

    leaky = calibrator.fit(X, y, y_proba=P).out_of_sample_proba_
    predicted = calibrator.fit(X, y, y_proba=P, groups=groups).out_of_sample_proba_
    assert brier(predicted) > 0.45
    if similarity in ("forest", "euclidean"):
        assert brier(leaky) < 0.1


def test_groups_no_voter_of_the_own_group_contributes():
    """Flip the labels of one group: the votes on its own items must stay as they were."""
    X, y, P = draw(n=60, K=2)
    groups = np.arange(60) % 12
    sbaw = get_calibrator("sbaw").fit(X, y, y_proba=P, groups=groups).out_of_sample_proba_
    flipped = np.where(groups == 3, 1 - y, y)
    again = get_calibrator("sbaw").fit(X, flipped, y_proba=P, groups=groups).out_of_sample_proba_
    np.testing.assert_array_equal(again[groups == 3], sbaw[groups == 3])
    assert not np.array_equal(again[groups != 3], sbaw[groups != 3])


@pytest.mark.parametrize("name", ["swc", "sbaw", "sharp"])
def test_out_of_sample_brier_is_that_of_fresh_data(name):
    cal = make_hidden_heterogeneity(1500, heterogeneity=0.8, random_state=4)
    new = cal.sample(4000, random_state=5)
    calibrator = (
        SimilarityCalibrator("extra-trees", power=4.0) if name == "sharp" else get_calibrator(name)
    ).fit(cal.X, cal.y, y_proba=cal.y_proba)
    losses = [
        ((Q - (y[:, None] == cal.classes)) ** 2).sum(axis=1)
        for Q, y in (
            (calibrator.out_of_sample_proba_, cal.y),
            (calibrator.predict_proba(new.X, y_proba=new.y_proba), new.y),
        )
    ]
    error = np.sqrt(sum(loss.var() / len(loss) for loss in losses))
    assert abs(losses[0].mean() - losses[1].mean()) < 2 * error


def test_a_transformer_that_learns_from_labels_is_refused():
    X, y, P = draw()
    supervised = LinearDiscriminantAnalysis()
    with pytest.raises(ValueError, match="learns from labels.*FrozenEstimator"):
        SimilarityCalibrator(features=supervised).fit(X, y, y_proba=P)
    frozen = FrozenEstimator(supervised.fit(X, y))
    Q = SimilarityCalibrator(features=frozen).fit(X, y, y_proba=P).predict_proba(X, y_proba=P)
    np.testing.assert_allclose(Q.sum(axis=1), 1)
