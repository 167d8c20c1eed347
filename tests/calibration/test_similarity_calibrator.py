"""The calibrator's own promises: evidence, extension, intervals, containers, copies."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetcal import SimilarityCalibrator, get_calibrator
from hetcal._exceptions import UnknownCategoryWarning
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.kernels.intervals import wilson_interval
from hetcal.similarity import (
    CombinedSimilarity,
    EuclideanSimilarity,
    ForestProximity,
    PrecomputedSimilarity,
    RBFSimilarity,
)

FOREST = ForestProximity(20)
N, M = 120, 20


@pytest.fixture(scope="module")
def data():
    drawn = make_hidden_heterogeneity(
        N, n_classes=3, heterogeneity=0.8, classes=["ant", "bee", "cat"], random_state=0
    )
    return drawn, drawn.sample(M, random_state=1)


def fitted(data, *args, **params):
    cal, _ = data
    return SimilarityCalibrator(*args, **params).fit(cal.X, cal.y, y_proba=cal.y_proba)


EVERY_KIND = [
    {"similarity": FOREST},
    {"similarity": FOREST, "power": 3.0},
    {"similarity": FOREST, "n_neighbors": 7},
    {"similarity": FOREST, "n_neighbors": 7, "weights": "uniform"},
    {"similarity": EuclideanSimilarity(), "n_neighbors": 7},
    {"similarity": EuclideanSimilarity(duplicates="paper"), "n_neighbors": 7, "weights": "uniform"},
    {"similarity": RBFSimilarity(), "power": 2.0},
    {"similarity": CombinedSimilarity(FOREST, RBFSimilarity())},
]


# Evidence.


@pytest.mark.parametrize("params", EVERY_KIND, ids=range(len(EVERY_KIND)))
@pytest.mark.parametrize("weighted", [False, True])
def test_all_evidence_reproduces_the_prediction(data, params, weighted):
    cal, new = data
    weight = np.random.default_rng(0).random(N) if weighted else None
    calibrator = SimilarityCalibrator(**params)
    calibrator.fit(cal.X, cal.y, y_proba=cal.y_proba, sample_weight=weight)
    table = calibrator.evidence(new.X, y_proba=new.y_proba, top=N)
    assert list(table.columns) == [
        "item", "rank", "calibration_item", "similarity", "weight", "label",
    ]  # fmt: skip
    np.testing.assert_allclose(table.groupby("item")["weight"].sum(), np.ones(M))
    shares = table.pivot_table(
        index="item", columns="label", values="weight", aggfunc="sum", fill_value=0
    ).reindex(columns=cal.classes, fill_value=0)
    Q, support = calibrator.predict_proba(new.X, y_proba=new.y_proba, return_support=True)
    np.testing.assert_allclose(shares.to_numpy(), Q, atol=1e-9)
    assert (table["label"].to_numpy() == cal.y[table["calibration_item"]]).all()
    if not weighted:
        np.testing.assert_allclose(table.groupby("item")["similarity"].sum(), support)
    assert (table.groupby("item")["weight"].diff().dropna() <= 1e-12).all()
    assert not table.duplicated(["item", "calibration_item"]).any()


@pytest.mark.parametrize("params", EVERY_KIND, ids=range(len(EVERY_KIND)))
def test_the_top_few_are_the_heaviest(data, params):
    _, new = data
    calibrator = fitted(data, **params)
    whole = calibrator.evidence(new.X, y_proba=new.y_proba, top=N)
    few = calibrator.evidence(new.X, y_proba=new.y_proba, top=4)
    pd.testing.assert_frame_equal(few, whole[whole["rank"] <= 4].reset_index(drop=True))
    assert (few.groupby("item")["weight"].sum() <= 1 + 1e-12).all()


@pytest.mark.parametrize("top", [0, -3, 2.5, "all", None])
def test_top_must_be_a_positive_integer(data, top):
    _, new = data
    with pytest.raises(ValueError, match="top must be a positive number of voters"):
        fitted(data, FOREST).evidence(new.X, y_proba=new.y_proba, top=top)


# New calibration items.


@pytest.mark.parametrize("params", EVERY_KIND[:5], ids=range(5))
def test_extended_items_vote(data, params):
    cal, new = data
    more = cal.sample(30, random_state=2)
    before = fitted(data, **params)
    calibrator = pickle.loads(pickle.dumps(before))
    calibrator.out_of_sample_proba_  # noqa: B018, must be forgotten
    assert calibrator.extend(more.X, more.y, y_proba=more.y_proba) is calibrator
    assert calibrator.out_of_sample_proba_.shape == (N + 30, 3)
    table = calibrator.evidence(more.X, y_proba=more.y_proba, top=N + 30)
    itself = table[table["calibration_item"] == table["item"] + N]
    assert len(itself) >= 28  # each meets itself, now a calibration item
    assert (itself["label"].to_numpy() == more.y[itself["item"]]).all()
    if "n_neighbors" not in params:
        grown = calibrator.support(new.X, y_proba=new.y_proba)
        assert (grown >= before.support(new.X, y_proba=new.y_proba) - 1e-12).all()
        assert grown.sum() > before.support(new.X, y_proba=new.y_proba).sum()


def test_extension_in_parts_equals_extension_at_once(data):
    cal, new = data
    more = cal.sample(30, random_state=2)
    once, twice = fitted(data, FOREST), fitted(data, FOREST)
    once.extend(more.X, more.y, y_proba=more.y_proba)
    for part in (slice(0, 11), slice(11, 30)):
        twice.extend(more.X[part], more.y[part], y_proba=more.y_proba[part])
    for method in (
        "predict_proba",
        "support",
        "predict_smoothed_interval",
        "effective_sample_size",
    ):
        a, b = (getattr(c, method)(new.X, y_proba=new.y_proba) for c in (once, twice))
        np.testing.assert_array_equal(a, b)


def test_extension_with_weights(data):
    cal, new = data
    more = cal.sample(30, random_state=2)
    plain, weighted = (fitted(data, "rbf") for _ in range(2))
    plain.extend(more.X, more.y, y_proba=more.y_proba)
    plain.extend(more.X, more.y, y_proba=more.y_proba)
    weighted.extend(more.X, more.y, y_proba=more.y_proba, sample_weight=np.full(30, 2.0))
    np.testing.assert_allclose(
        weighted.predict_proba(new.X, y_proba=new.y_proba),
        plain.predict_proba(new.X, y_proba=new.y_proba),
        atol=1e-12,
    )


def test_extension_refuses_what_does_not_fit(data):
    cal, new = data
    with pytest.raises(NotFittedError):
        SimilarityCalibrator().extend(new.X, new.y, y_proba=new.y_proba)
    calibrator = fitted(data, FOREST)
    before = calibrator.predict_proba(new.X, y_proba=new.y_proba)
    with pytest.raises(ValueError, match="dog"):
        calibrator.extend(new.X, ["dog"] * M, y_proba=new.y_proba)
    with pytest.raises(ValueError, match="rows"):
        calibrator.extend(new.X, new.y[:-1], y_proba=new.y_proba)
    with pytest.raises(ValueError, match="features"):
        calibrator.extend(new.X[:, 1:], new.y, y_proba=new.y_proba)
    np.testing.assert_array_equal(calibrator.predict_proba(new.X, y_proba=new.y_proba), before)
    grouped = SimilarityCalibrator(FOREST).fit(
        cal.X, cal.y, y_proba=cal.y_proba, groups=np.arange(N) % 9
    )
    with pytest.raises(ValueError, match="groups= or heterogeneity=.*Fit anew"):
        grouped.extend(new.X, new.y, y_proba=new.y_proba)


# Intervals.


@pytest.mark.parametrize("params", EVERY_KIND, ids=range(len(EVERY_KIND)))
def test_intervals_hold_their_centre_and_widen_with_confidence(data, params):
    _, new = data
    calibrator = fitted(data, **params)
    Z = calibrator.space_.transform(new.X, calibrator._new_scores(new.X, new.y_proba, None))
    mass = calibrator.similarity_.unbiased_vote(Z, calibrator.voters_, calibrator._rule(None)).mass
    centre = mass / mass.sum(axis=1, keepdims=True)
    last = np.zeros_like(centre)
    for confidence in (0.5, 0.9, 0.99):
        low, high = calibrator.predict_smoothed_interval(
            new.X, y_proba=new.y_proba, confidence=confidence
        )
        assert ((low <= centre + 1e-12) & (centre <= high + 1e-12)).all()
        assert (high - low > last).all()
        last = high - low


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.1, np.nan])
def test_confidence_lies_between_zero_and_one(data, confidence):
    _, new = data
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        fitted(data, FOREST).predict_smoothed_interval(
            new.X, y_proba=new.y_proba, confidence=confidence
        )


def coverage_of_target(seed, similarities, interval):
    """Share of intervals that hold sum_i s P(y | x_i) / sum_i s; both by name of the weights."""
    cal = make_hidden_heterogeneity(400, heterogeneity=0.5, random_state=seed)
    new = cal.sample(100, random_state=100 + seed)
    swc = SimilarityCalibrator().fit(cal.X, cal.y, y_proba=cal.y_proba)
    Z = swc.space_.transform(new.X, swc._new_scores(new.X, new.y_proba, None))
    S = getattr(swc.similarity_, similarities)(Z)
    target = S @ cal.true_proba / S.sum(axis=1, keepdims=True)
    low, high = interval(swc, new)
    return ((low <= target) & (target <= high)).mean()


def test_interval_covers_its_target():
    found = [
        coverage_of_target(
            seed,
            "unbiased_pairwise",
            lambda swc, new: swc.predict_smoothed_interval(new.X, y_proba=new.y_proba),
        )
        for seed in range(8)
    ]
    assert np.mean(found) >= 0.92


def test_in_bag_weights_would_not_cover_theirs():
    """Why intervals take out-of-bag voters: the same formula with all trees fails."""

    def naive(swc, new):
        Q = swc.predict_proba(new.X, y_proba=new.y_proba)
        size = swc.effective_sample_size(new.X, y_proba=new.y_proba)
        return wilson_interval(Q, size[:, None])

    found = [coverage_of_target(seed, "pairwise", naive) for seed in range(4)]
    assert np.mean(found) < 0.85


# Input.


def test_logits_are_taken_and_remembered(data):
    cal, new = data
    logits, new_logits = np.log(cal.y_proba), np.log(new.y_proba)
    by_logits = SimilarityCalibrator(FOREST).fit(cal.X, cal.y, logits=logits)
    np.testing.assert_allclose(
        by_logits.predict_proba(new.X, logits=new_logits + 5.0),
        fitted(data, FOREST).predict_proba(new.X, y_proba=new.y_proba),
        atol=1e-12,
    )
    with pytest.raises(ValueError, match="was fitted with logits"):
        by_logits.predict_proba(new.X, y_proba=new.y_proba)


def test_a_transformer_before_the_similarity(data):
    cal, new = data
    pca = PCA(2)
    by_name = fitted(data, FOREST, features=pca)
    assert not hasattr(pca, "components_")
    assert by_name.n_features_in_ == cal.X.shape[1]
    done = pca.fit(cal.X)
    frozen = fitted(data, FOREST, features=FrozenEstimator(done))
    piped = fitted(data, FOREST, features=FrozenEstimator(make_pipeline(done)))
    plain = SimilarityCalibrator(FOREST).fit(done.transform(cal.X), cal.y, y_proba=cal.y_proba)
    expected = plain.predict_proba(done.transform(new.X), y_proba=new.y_proba)
    for calibrator in (by_name, frozen, piped):
        Q = calibrator.predict_proba(new.X, y_proba=new.y_proba)
        np.testing.assert_allclose(Q, expected, atol=1e-12)
    other = PCA(2).fit(new.X)
    held = fitted(data, FOREST, features=FrozenEstimator(other))
    np.testing.assert_array_equal(held.space_.features_.components_, other.components_)


def as_table(X, kind):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    columns["x2"] = np.array(["low", "mid", "high", "top"])[X[:, 2].astype(int)]
    if kind == "pandas":
        return pd.DataFrame(columns).astype({"x2": "category"})
    return pl.DataFrame(columns).with_columns(pl.col("x2").cast(pl.Categorical))


@pytest.mark.parametrize("similarity", [FOREST, EuclideanSimilarity()], ids=str)
def test_tables_give_what_arrays_give(data, similarity):
    cal, new = data
    results = []
    for kind in ("pandas", "polars"):
        calibrator = SimilarityCalibrator(similarity).fit(
            as_table(cal.X, kind), pd.Series(cal.y), y_proba=pl.DataFrame(cal.y_proba)
        )
        results.append(calibrator.predict_proba(as_table(new.X, kind), y_proba=new.y_proba))
    by_name = [2, 0, 1, 3]  # one column per level: high, low, mid, top
    one_hot = [np.eye(4)[X[:, 2].astype(int)][:, by_name] for X in (cal.X, new.X)]
    X, X_new = (
        np.hstack([part[:, :2], hot, part[:, 3:]])
        for part, hot in zip((cal.X, new.X), one_hot, strict=True)
    )
    plain = SimilarityCalibrator(similarity).fit(X, cal.y, y_proba=cal.y_proba)
    for Q in results:
        np.testing.assert_allclose(Q, plain.predict_proba(X_new, y_proba=new.y_proba), atol=1e-9)


def test_an_unknown_level_is_told_and_voted_on(data):
    cal, new = data
    calibrator = SimilarityCalibrator(FOREST).fit(
        as_table(cal.X, "pandas"), cal.y, y_proba=cal.y_proba
    )
    table = as_table(new.X, "pandas")
    table["x2"] = table["x2"].astype(str).replace("mid", "unheard-of")
    with pytest.warns(UnknownCategoryWarning, match="unheard-of"):
        Q = calibrator.predict_proba(table, y_proba=new.y_proba)
    np.testing.assert_allclose(Q.sum(axis=1), 1)


@pytest.mark.parametrize("similarity", ["forest", "isolation", "euclidean", "rbf", "cosine"])
def test_missing_values(data, similarity):
    cal, new = data
    X, X_new = cal.X.copy(), new.X.copy()
    X[::5, 0] = X_new[::3, 1] = np.nan
    calibrator = SimilarityCalibrator(similarity).fit(X, cal.y, y_proba=cal.y_proba)
    Q = calibrator.predict_proba(X_new, y_proba=new.y_proba)
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    np.testing.assert_allclose(calibrator.out_of_sample_proba_.sum(axis=1), 1)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("similarity", ["euclidean", "rbf", "cosine"])
def test_sparse_equals_dense(data, similarity, scale):
    from hetcal.similarity import make_similarity

    cal, new = data
    X, X_new = (np.where(np.abs(part) > 0.7, part, 0) for part in (cal.X, new.X))
    params = {"similarity": make_similarity(similarity).set_params(scale=scale), "augment": "proba"}
    dense = SimilarityCalibrator(**params).fit(X, cal.y, y_proba=cal.y_proba)
    lean = SimilarityCalibrator(**params).fit(sparse.csr_matrix(X), cal.y, y_proba=cal.y_proba)
    np.testing.assert_allclose(
        lean.predict_proba(sparse.csr_array(X_new), y_proba=new.y_proba),
        dense.predict_proba(X_new, y_proba=new.y_proba),
        atol=1e-9,
    )
    np.testing.assert_allclose(
        dense.predict_proba(sparse.csr_array(X_new), y_proba=new.y_proba),
        lean.predict_proba(X_new, y_proba=new.y_proba),
        atol=1e-9,
    )
    lean.extend(sparse.csr_array(X_new), new.y, y_proba=new.y_proba)
    assert lean.out_of_sample_proba_.shape == (N + M, 3)
    with pytest.raises(TypeError, match="needs a dense array"):
        SimilarityCalibrator(FOREST).fit(sparse.csr_array(X), cal.y, y_proba=cal.y_proba)


def test_read_only_float32_and_fortran_order(data):
    cal, new = data
    X, X_new = np.asfortranarray(cal.X.astype(np.float32)), new.X.astype(np.float32)
    X.flags.writeable = X_new.flags.writeable = False
    P = cal.y_proba.copy()
    P.flags.writeable = False
    Q = (
        SimilarityCalibrator(FOREST)
        .fit(X, cal.y, y_proba=P)
        .predict_proba(X_new, y_proba=new.y_proba)
    )
    expected = (
        SimilarityCalibrator(FOREST)
        .fit(X.astype(np.float64), cal.y, y_proba=P)
        .predict_proba(X_new.astype(np.float64), y_proba=new.y_proba)
    )
    np.testing.assert_array_equal(Q, expected)


def test_precomputed_similarities(data):
    cal, new = data
    rbf = RBFSimilarity().fit(cal.X, None)
    expected = fitted(data, RBFSimilarity(), augment=None)
    calibrator = SimilarityCalibrator("precomputed", augment=None)
    calibrator.fit(rbf.pairwise(cal.X), cal.y, y_proba=cal.y_proba)
    np.testing.assert_allclose(
        calibrator.predict_proba(rbf.pairwise(new.X), y_proba=new.y_proba),
        expected.predict_proba(new.X, y_proba=new.y_proba),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        calibrator.out_of_sample_proba_, expected.out_of_sample_proba_, atol=1e-12
    )
    with pytest.raises(ValueError, match="Pass augment=None"):
        SimilarityCalibrator("precomputed").fit(rbf.pairwise(cal.X), cal.y, y_proba=cal.y_proba)
    holes = rbf.pairwise(cal.X)
    holes[3, 4] = np.nan
    with pytest.raises(ValueError, match="holds nan"):
        SimilarityCalibrator(PrecomputedSimilarity(), augment=None).fit(
            holes, cal.y, y_proba=cal.y_proba
        )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"weights": "distance"}, "weights must be 'similarity' or 'uniform'; got 'distance'"),
        ({"n_neighbors": 0}, "n_neighbors must be None or a positive integer; got 0"),
        ({"n_neighbors": 2.5}, "n_neighbors must be"),
        ({"power": 0}, "power must be a number above 0 and at most 100; got 0"),
        ({"power": np.nan}, "power must be"),
        ({"power": np.inf}, "power must be"),
        ({"power": "2"}, "power must be"),
        ({"augment": "logits"}, "augment must be one of"),
        ({"similarity": "nearest"}, "similarity must be one of forest"),
    ],
)
def test_bad_parameters_are_refused_at_fit(data, params, message):
    with pytest.raises(ValueError, match=message):
        fitted(data, **params)


def test_features_are_needed_at_both_ends(data):
    cal, new = data
    with pytest.raises(ValueError, match="X is None. Pass X, or use a global method"):
        SimilarityCalibrator().fit(None, cal.y, y_proba=cal.y_proba)
    with pytest.raises(ValueError, match="X is None"):
        fitted(data, FOREST).predict_proba(None, y_proba=new.y_proba)


# Copies.


def test_clone_pickle_and_nested_parameters(data):
    _, new = data
    calibrator = SimilarityCalibrator(
        CombinedSimilarity(ForestProximity(10), RBFSimilarity()),
        features=make_pipeline(StandardScaler(), PCA(2)),
        classes=np.array(["ant", "bee", "cat"]),
    )
    calibrator.set_params(similarity__on_features__n_estimators=15, features__pca__n_components=3)
    copy = clone(calibrator)
    assert copy.similarity is not calibrator.similarity
    assert copy.get_params()["similarity__on_features__n_estimators"] == 15
    cal = data[0]
    Q = calibrator.fit(cal.X, cal.y, y_proba=cal.y_proba).predict_proba(new.X, y_proba=new.y_proba)
    assert not hasattr(calibrator.similarity, "weight_")  # the parameter itself is never fitted
    loaded = pickle.loads(pickle.dumps(calibrator))
    np.testing.assert_array_equal(loaded.predict_proba(new.X, y_proba=new.y_proba), Q)
    copy.fit(cal.X, cal.y, y_proba=cal.y_proba)
    np.testing.assert_array_equal(copy.predict_proba(new.X, y_proba=new.y_proba), Q)


def test_presets_do_not_share_their_parts():
    one, two = (get_calibrator("sba", preset="paper") for _ in range(2))
    assert one.similarity is not two.similarity
    one.set_params(similarity__scale=True)
    assert not get_calibrator("sbaw", preset="paper").similarity.scale


def test_refitting_forgets(data):
    cal, new = data
    calibrator = fitted(data, FOREST)
    before = calibrator.out_of_sample_proba_
    calibrator.fit(new.X, new.y, y_proba=new.y_proba)
    assert calibrator.out_of_sample_proba_.shape == (M, 3)
    calibrator.fit(cal.X, cal.y, y_proba=cal.y_proba)
    np.testing.assert_array_equal(calibrator.out_of_sample_proba_, before)
