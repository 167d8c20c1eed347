"""Properties of similarity calibrators: simplex, support, relabelling, order, weights, threads."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from hetcal import SimilarityCalibrator, get_calibrator
from hetcal._exceptions import HetcalWarning, SupportWarning
from hetcal.calibration import votes_on_items
from hetcal.kernels import core_name, use_core
from hetcal.similarity import (
    CombinedSimilarity,
    CosineSimilarity,
    EuclideanSimilarity,
    ForestProximity,
    IsolationProximity,
    RBFSimilarity,
)

# Labels and probabilities here are made up, also the wrong way round.
pytestmark = pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")

CORES = ["pure", "native"] if core_name() == "native" else ["pure"]
FOREST = ForestProximity(12)
ALL = {
    "forest": SimilarityCalibrator(FOREST),
    "forest power": SimilarityCalibrator(FOREST, power=4.0),
    "forest nearest": SimilarityCalibrator(FOREST, n_neighbors=5),
    "extra-trees": SimilarityCalibrator(ForestProximity(12, trees="extra"), augment="proba"),
    "out-of-bag": SimilarityCalibrator(ForestProximity(12, voters="out-of-bag")),
    "isolation": SimilarityCalibrator(IsolationProximity(12)),
    "sba": get_calibrator("sba"),
    "sbaw": get_calibrator("sbaw"),
    "paper sba": get_calibrator("sba", preset="paper"),
    "paper swc": get_calibrator("swc", preset="paper", similarity=FOREST),
    "euclidean power": SimilarityCalibrator("euclidean", power=3.0),
    "cosine": SimilarityCalibrator("cosine", augment=None),
    "rbf": SimilarityCalibrator("rbf", augment="log-proba"),
    "combined": SimilarityCalibrator(CombinedSimilarity(FOREST, RBFSimilarity())),
}
METRIC = {name: ALL[name] for name in ("euclidean power", "cosine", "rbf")}
UNIT = ("forest", "extra-trees", "out-of-bag", "isolation", "cosine", "rbf", "combined")

pytestmark = pytest.mark.filterwarnings("ignore::hetcal._exceptions.SupportWarning")


def draw(seed, n=40, m=15, K=3, d=3):
    rng = np.random.default_rng(seed)
    X, P = rng.normal(size=(n + m, d)), rng.dirichlet(np.full(K, 0.5), size=n + m)
    y = np.where(X[:, 0] > 0, P.argmax(axis=1), rng.integers(0, K, n + m))
    y[:K] = np.arange(K)
    return X[:n], y[:n], P[:n], X[n:], P[n:]


def fresh(calibrator, **params):
    return clone(calibrator).set_params(**params)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), K=st.integers(2, 5), core=st.sampled_from(CORES))
def test_rows_are_probabilities_and_support_is_bounded(name, seed, K, core):
    X, y, P, X_new, P_new = draw(seed, K=K)
    with use_core(core), warnings.catch_warnings():
        warnings.simplefilter("ignore", HetcalWarning)
        calibrator = fresh(ALL[name]).fit(X, y, y_proba=P)
        Q, support = calibrator.predict_proba(X_new, y_proba=P_new, return_support=True)
        size = calibrator.effective_sample_size(X_new, y_proba=P_new)
        low, high = calibrator.predict_smoothed_interval(X_new, y_proba=P_new)
        predicted = calibrator.out_of_sample_proba_
    for rows in (Q, predicted):
        assert (rows >= 0).all()
        np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-9)
    assert (support >= 0).all()
    assert (size <= len(y) + 1e-9).all()
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()
    if name in UNIT:
        assert (support <= len(y) + 1e-9).all()


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), weighted=st.booleans())
def test_similarity_one_everywhere_gives_class_frequencies(seed, weighted):
    X, y, P, X_new, P_new = draw(seed)
    weight = np.random.default_rng(seed).random(len(y)) if weighted else np.ones(len(y))
    calibrator = SimilarityCalibrator(lambda A, B: np.ones((len(A), len(B))))
    calibrator.fit(X, y, y_proba=P, sample_weight=weight)
    Q, support = calibrator.predict_proba(X_new, y_proba=P_new, return_support=True)
    frequency = np.bincount(y, weights=weight) / weight.sum()
    np.testing.assert_allclose(Q, np.tile(frequency, (len(Q), 1)), atol=1e-12)
    np.testing.assert_allclose(support, weight.sum())


@pytest.mark.parametrize("name", ["forest", "out-of-bag", "rbf", "combined", "sbaw"])
def test_heterogeneity_of_zero_changes_nothing(name):
    X, y, P, X_new, P_new = draw(1)
    calibrator = fresh(ALL[name]).fit(X, y, y_proba=P)
    plain = calibrator.predict_proba(X_new, y_proba=P_new, return_support=True)
    for zero in (np.zeros(15), [-0.1] * 15):
        voted = calibrator.predict_proba(
            X_new, y_proba=P_new, heterogeneity=zero, return_support=True
        )
        np.testing.assert_allclose(voted[0], plain[0], atol=1e-12)
        np.testing.assert_allclose(voted[1], plain[1], rtol=1e-12)


@pytest.mark.parametrize("core", CORES)
def test_given_heterogeneity_is_the_threshold_vote(core):
    X, y, P, X_new, P_new = draw(2, n=60)
    hh = np.linspace(0, 2, len(X_new))
    with use_core(core):
        swc = SimilarityCalibrator(FOREST).fit(X, y, y_proba=P)
        Z = swc.space_.transform(X_new, swc._new_scores(X_new, P_new, None))
        S = swc.similarity_.pairwise(Z)
        Q, support = swc.predict_proba(X_new, y_proba=P_new, heterogeneity=hh, return_support=True)
        table = swc.evidence(X_new, y_proba=P_new, heterogeneity=hh, top=100)
    for t, row in enumerate(S):
        voting = np.flatnonzero(row >= hh[t] / 2)
        voting = voting[row[voting] > 0]
        if not voting.size:
            voting = [int(row.argmax())]
        votes = np.bincount(y[voting], weights=row[voting], minlength=3)
        np.testing.assert_allclose(Q[t], votes / votes.sum(), atol=1e-12)
        assert support[t] == pytest.approx(row[voting].sum())
        assert set(table.loc[table["item"] == t, "calibration_item"]) == set(voting)
    np.testing.assert_allclose(
        swc.support(X_new, y_proba=P_new, heterogeneity=hh), support, rtol=1e-12
    )


@pytest.mark.parametrize(
    "bad", [np.zeros(3), np.full(15, np.nan), np.full(15, np.inf), ["a"] * 15, np.zeros((15, 2))]
)
def test_bad_heterogeneity_values_are_refused_by_name(bad):
    X, y, P, X_new, P_new = draw(2)
    swc = SimilarityCalibrator(FOREST).fit(X, y, y_proba=P)
    with pytest.raises(ValueError, match="heterogeneity"):
        swc.predict_proba(X_new, y_proba=P_new, heterogeneity=bad)


@pytest.mark.parametrize("name", ["sba", "sbaw", "paper sba", *METRIC])
def test_relabelled_classes_give_relabelled_columns(name):
    """Exchanging classes exchanges columns, where no random draw follows the order of columns."""
    X, y, P, X_new, P_new = draw(3)
    order = np.array([2, 0, 1])
    names = np.array(["c", "a", "b"])
    before = fresh(ALL[name]).fit(X, y, y_proba=P).predict_proba(X_new, y_proba=P_new)
    after = fresh(ALL[name], classes=names[order])
    after.fit(X, names[y], y_proba=P[:, order])
    Q = after.predict_proba(X_new, y_proba=P_new[:, order])
    np.testing.assert_allclose(Q, before[:, order], atol=1e-8)
    predicted = after.predict(X_new, y_proba=P_new[:, order])
    assert (predicted == names[order][Q.argmax(axis=1)]).all()


@pytest.mark.parametrize("name", ["forest", "out-of-bag", "combined", "isolation"])
def test_names_of_classes_do_not_matter_to_forests(name):
    X, y, P, X_new, P_new = draw(3)
    names = np.array(["zebra", "ant", "mouse"])
    before = fresh(ALL[name]).fit(X, y, y_proba=P)
    after = fresh(ALL[name], classes=names).fit(X, names[y], y_proba=P)
    np.testing.assert_array_equal(
        after.predict_proba(X_new, y_proba=P_new), before.predict_proba(X_new, y_proba=P_new)
    )
    np.testing.assert_array_equal(after.out_of_sample_proba_, before.out_of_sample_proba_)


@pytest.mark.parametrize("name", ["sba", "sbaw", *METRIC])
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_row_order_does_not_matter_without_random_draws(name, seed):
    X, y, P, X_new, P_new = draw(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    before = fresh(ALL[name]).fit(X, y, y_proba=P)
    after = fresh(ALL[name]).fit(X[order], y[order], y_proba=P[order])
    np.testing.assert_allclose(
        after.predict_proba(X_new[::-1], y_proba=P_new[::-1])[::-1],
        before.predict_proba(X_new, y_proba=P_new),
        atol=1e-7,
    )
    np.testing.assert_allclose(
        after.out_of_sample_proba_, before.out_of_sample_proba_[order], atol=1e-7
    )


@pytest.mark.parametrize("name", METRIC)
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_weight_two_equals_the_row_twice_and_weight_zero_its_absence(name, seed):
    X, y, P, X_new, P_new = draw(seed)
    weight = np.random.default_rng(seed).choice([1.0, 2.0], len(y))
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = fresh(ALL[name]).fit(X, y, y_proba=P, sample_weight=weight)
    doubled = fresh(ALL[name]).fit(X[repeated], y[repeated], y_proba=P[repeated])
    for method in ("predict_proba", "support"):
        np.testing.assert_allclose(
            getattr(weighted, method)(X_new, y_proba=P_new),
            getattr(doubled, method)(X_new, y_proba=P_new),
            rtol=1e-6,
            atol=1e-9,
        )


@pytest.mark.parametrize("name", ALL)
def test_a_missing_class_keeps_its_column(name):
    X, y, P, X_new, P_new = draw(5)
    present = y != 1
    calibrator = fresh(ALL[name], classes=[0, 1, 2])
    calibrator.fit(X[present], y[present], y_proba=P[present])
    Q, support = calibrator.predict_proba(X_new, y_proba=P_new, return_support=True)
    assert Q.shape == (15, 3)
    assert (Q[support > 0, 1] == 0).all()
    assert calibrator.out_of_sample_proba_.shape == (present.sum(), 3)


@pytest.mark.parametrize("core", CORES)
def test_both_cores_and_any_number_of_threads_agree(core):
    X, y, P, X_new, P_new = draw(6, n=80)
    reference = SimilarityCalibrator(random_state=3).fit(X, y, y_proba=P)
    with use_core(core):
        for n_jobs in (1, 2):
            other = SimilarityCalibrator(random_state=3, n_jobs=n_jobs).fit(X, y, y_proba=P)
            for method in ("predict_proba", "support", "effective_sample_size"):
                np.testing.assert_allclose(
                    getattr(other, method)(X_new, y_proba=P_new),
                    getattr(reference, method)(X_new, y_proba=P_new),
                    atol=1e-11,
                )
            np.testing.assert_allclose(
                other.out_of_sample_proba_, reference.out_of_sample_proba_, atol=1e-12
            )


def test_items_without_support_keep_p_and_are_counted():
    X, y, P, X_new, P_new = draw(7)
    X_new = X_new.copy()
    X_new[[2, 5, 9]] = 1e6
    calibrator = SimilarityCalibrator(RBFSimilarity(bandwidth=1.0, scale=False), augment=None)
    calibrator.fit(X, y, y_proba=P)
    message = "3 of 15 samples have no calibration support; their uncalibrated probabilities"
    with pytest.warns(SupportWarning, match=message) as caught:
        Q, support = calibrator.predict_proba(X_new, y_proba=P_new, return_support=True)
    assert caught[0].filename == __file__  # the line that the user wrote
    np.testing.assert_array_equal(Q[[2, 5, 9]], P_new[[2, 5, 9]])
    np.testing.assert_array_equal(np.flatnonzero(support == 0), [2, 5, 9])
    low, high = calibrator.predict_smoothed_interval(X_new, y_proba=P_new)
    assert (low[[2, 5, 9]] == 0).all()
    assert (high[[2, 5, 9]] == 1).all()
    assert (calibrator.effective_sample_size(X_new, y_proba=P_new)[[2, 5, 9]] == 0).all()
    table = calibrator.evidence(X_new, y_proba=P_new)
    assert set(table["item"]) == set(range(15)) - {2, 5, 9}


@pytest.mark.parametrize("weights", ["similarity", "uniform"])
def test_zero_similarity_is_no_support_however_votes_are_weighted(weights):
    X, y, P, X_new, P_new = draw(8)
    nothing = SimilarityCalibrator(lambda A, B: np.zeros((len(A), len(B))), weights=weights)
    with pytest.warns(SupportWarning, match="15 of 15"):
        Q = nothing.fit(X, y, y_proba=P).predict_proba(X_new, y_proba=P_new)
    np.testing.assert_array_equal(Q, P_new)


def test_blocks_of_rows_equal_the_whole(monkeypatch):
    X, y, P, X_new, P_new = draw(9)
    hh = np.linspace(0, 1, 15)
    for name in ("forest", "forest power", "sbaw", "combined"):
        calibrator = fresh(ALL[name]).fit(X, y, y_proba=P)
        whole = calibrator.predict_proba(X_new, y_proba=P_new, heterogeneity=hh)
        bounds = calibrator.predict_smoothed_interval(X_new, y_proba=P_new, heterogeneity=hh)
        with monkeypatch.context() as patch:
            patch.setattr(votes_on_items, "_BLOCK_ROWS", 4)
            parts = calibrator.predict_proba(X_new, y_proba=P_new, heterogeneity=hh)
            np.testing.assert_allclose(parts, whole, atol=1e-12)
            again = calibrator.predict_smoothed_interval(X_new, y_proba=P_new, heterogeneity=hh)
            np.testing.assert_allclose(again, bounds, atol=1e-12)


def test_cosine_of_equal_items_and_duplicates_stay_probabilities():
    X, y, P = np.ones((20, 2)), np.tile([0, 1], 10), np.full((20, 2), 0.5)
    for similarity in (CosineSimilarity(), EuclideanSimilarity(), RBFSimilarity(), FOREST):
        Q = SimilarityCalibrator(similarity).fit(X, y, y_proba=P).predict_proba(X, y_proba=P)
        np.testing.assert_allclose(Q, 0.5, atol=1e-9)
