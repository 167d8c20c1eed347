"""Mistakes that would give numbers without a word: each is an error, or does what was meant."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from hetcal import (
    HiddenHeterogeneity,
    LocallyCalibratedClassifier,
    SimilarityCalibrator,
    get_calibrator,
)
from hetcal.calibration import list_calibrators
from hetcal.metrics import brier_score, evaluate
from hetcal.similarity import EuclideanSimilarity, ForestProximity, PrecomputedSimilarity

N = 80
NAMES = ["maybe", "no", "yes"]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    P = rng.dirichlet(np.ones(3), size=N)
    y = np.array(NAMES)[[rng.choice(3, p=row) for row in P]]
    return X, y, P


def tables(P):
    named = {"p_" + name: P[:, k] for k, name in enumerate(NAMES)}
    return pd.DataFrame(P, columns=NAMES), pd.DataFrame(named), pl.DataFrame(named)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_columns_named_after_classes_come_in_their_order(data, which):
    _, y, P = data
    table = tables(P)[which]
    moved = table[list(table.columns)[::-1]]
    calibrator = get_calibrator("temperature")
    with pytest.raises(ValueError, match=r"named \[.*yes', .*no', .*maybe'\].*classes=\[\.\.\.\]"):
        calibrator.fit(None, y, y_proba=moved)
    with pytest.raises(ValueError, match="at fit and are .* now"):
        calibrator.fit(None, y, y_proba=table).predict_proba(y_proba=moved)
    for metric in (brier_score, evaluate):
        with pytest.raises(ValueError, match="Pass the probabilities in this order"):
            metric(y, moved)
    told = get_calibrator("temperature", classes=NAMES[::-1]).fit(None, y, y_proba=moved)
    expected = calibrator.fit(None, y, y_proba=P).predict_proba(y_proba=P)
    np.testing.assert_allclose(told.predict_proba(y_proba=moved)[:, ::-1], expected, atol=1e-9)


def test_a_single_column_named_after_the_first_class():
    y, p = ["no", "yes"] * 5, np.linspace(0.1, 0.9, 10)
    with pytest.raises(ValueError, match="of the second class"):
        brier_score(y, pd.DataFrame({"p_no": p}))
    assert brier_score(y, pd.DataFrame({"p_yes": p})) == brier_score(y, p)
    assert brier_score(y, pd.DataFrame({"risk": p})) == brier_score(y, p)


def test_names_without_a_meaning_are_no_hindrance(data):
    _, y, P = data
    expected = brier_score(y, P)
    numbered = pd.DataFrame(P), pl.DataFrame(P), pd.DataFrame(P, columns=["a", "b", "c"])
    assert [brier_score(y, table) for table in numbered] == [expected] * 3
    codes = np.searchsorted(NAMES, y)
    turned = pd.DataFrame(P[:, [2, 0, 1]])  # numbered by position, not by class
    assert brier_score(codes, turned, classes=[2, 0, 1]) == pytest.approx(expected)


def test_the_same_rows_in_another_order(data):
    X, y, P = data
    X, labels = pd.DataFrame(X, index=np.arange(N) + 7), pd.Series(y, index=np.arange(N) + 7)
    shuffled = labels.sample(frac=1, random_state=0)
    calibrator = get_calibrator("temperature")
    with pytest.raises(ValueError, match=r"another order, by their index.*y\.loc\[X\.index\]"):
        calibrator.fit(X, shuffled, y_proba=P)
    with pytest.raises(ValueError, match="another order"):
        LocallyCalibratedClassifier(calibrator="swc").fit(X, shuffled)
    with pytest.raises(ValueError, match="another order"):
        brier_score(shuffled, pd.DataFrame(P, columns=NAMES, index=X.index))
    calibrator.fit(X, shuffled.loc[X.index], y_proba=P)
    calibrator.fit(X.reset_index(drop=True), shuffled, y_proba=P)  # a numbered index says nothing


@pytest.mark.parametrize("start", [0, 7])
def test_numbers_from_zero_on_may_be_those_of_an_array(data, start):
    X, y, P = data
    shuffled = pd.Series(y, index=range(start, start + N)).sample(frac=1, random_state=0)
    X = pd.DataFrame(X, index=pd.RangeIndex(start, start + N))
    warned = pytest.warns(UserWarning, match="another order, by their index")
    with warned if start == 0 else pytest.raises(ValueError, match="another order"):
        get_calibrator("swc").fit(X, shuffled, y_proba=P)


@pytest.mark.parametrize("moved", ["y", "y_proba", "groups", "sample_weight"])
def test_rows_of_any_argument_in_another_order(data, moved):
    X, y, P = data
    index = pd.RangeIndex(7, 7 + N)
    X = pd.DataFrame(X, index=index)
    given = {
        "y": pd.Series(y, index=index),
        "y_proba": pd.DataFrame(P, columns=NAMES, index=index),
        "groups": pd.Series(np.arange(N) // 2, index=index),
        "sample_weight": pd.Series(np.ones(N), index=index),
    }
    right = {name: given[name].reset_index(drop=True) for name in given}
    given[moved] = given[moved].sample(frac=1, random_state=0)
    error = f"another order, by their index.*{moved}\\.loc.*reset_index"
    calibrator = get_calibrator("platt", preserve="label")  # takes weights and groups
    with pytest.raises(ValueError, match=error):
        calibrator.fit(X, given["y"], **{k: v for k, v in given.items() if k != "y"})
    with pytest.raises(ValueError, match="another order, by their index"):
        evaluate(**given)
    named = {k: given[k] for k in ("y", "groups", "sample_weight")}
    if moved != "y_proba":
        with pytest.raises(ValueError, match=error):
            LocallyCalibratedClassifier(calibrator="platt").fit(X, **named)
    calibrator.fit(X, right.pop("y"), **right)


def test_a_numbered_table_of_predictions_and_other_indexes_say_nothing(data):
    X, y, P = data
    X, labels = pd.DataFrame(X).iloc[::-1], pd.Series(y)[::-1]
    calibrator = get_calibrator("temperature")
    calibrator.fit(X, labels, y_proba=pd.DataFrame(P[::-1], columns=NAMES))
    calibrator.fit(X, pd.Series(y[::-1], index=[0] * N), y_proba=P[::-1])
    calibrator.fit(
        X, pd.Series(y[::-1], index=pd.MultiIndex.from_product([[0], range(N)])), y_proba=P[::-1]
    )


@pytest.mark.parametrize("name", ["temperature", "swc"])
def test_one_class_is_called_so(data, name):
    X, _, P = data
    with pytest.raises(ValueError, match="one class only"):
        get_calibrator(name).fit(X, ["no"] * N, y_proba=P)


def test_a_lazy_table(data):
    X, y, P = data
    with pytest.raises(TypeError, match=r"X\.collect\(\)"):
        SimilarityCalibrator().fit(pl.DataFrame(X).lazy(), y, y_proba=P)


def test_names_are_remembered_and_the_difference_is_shown(data):
    X, y, P = data
    table = pd.DataFrame(X, columns=["age", "income", "rooms"])
    calibrator = SimilarityCalibrator(ForestProximity(5)).fit(table, y, y_proba=P)
    assert calibrator.feature_names_in_.tolist() == ["age", "income", "rooms"]
    assert not hasattr(calibrator.fit(X, y, y_proba=P), "feature_names_in_")
    model = LogisticRegression().fit(table, y)
    wrapper = LocallyCalibratedClassifier(FrozenEstimator(model), "temperature").fit(table, y)
    with pytest.raises(ValueError, match="Column 0 was 'age' and is 'rooms'"):
        wrapper.predict_proba(table[["rooms", "income", "age"]])
    with pytest.raises(ValueError, match="now missing:\n- age"):
        wrapper.predict_proba(table[["income", "rooms"]])


@pytest.mark.parametrize("kind", ["euclidean", "published", "precomputed"])
@pytest.mark.parametrize("weights", ["similarity", "uniform"])
def test_an_item_of_weight_zero_takes_no_place(data, kind, weights):
    X, y, P = data
    new = X + 0.1
    counts = np.random.default_rng(1).integers(0, 2, N).astype(float)
    there = counts > 0
    X_there, new_there = X[there], new
    if kind == "precomputed":
        X, new = np.exp(-abs(X[:, :1] - X[:, 0])), np.exp(-abs(new[:, :1] - X[:, 0]))
        X_there, new_there = X[np.ix_(there, there)], new[:, there]
        options = {"similarity": PrecomputedSimilarity(), "augment": None}
    else:
        rule = "paper" if kind == "published" else "floor"
        options = {"similarity": EuclideanSimilarity(scale=False, duplicates=rule)}
        options["augment"] = "proba"
    calibrator = SimilarityCalibrator(n_neighbors=4, weights=weights, **options)
    alone = clone(calibrator).fit(X_there, y[there], y_proba=P[there])
    calibrator.fit(X, y, y_proba=P, sample_weight=counts)

    evidence = calibrator.evidence(new, y_proba=P)
    assert set(evidence["calibration_item"]) <= set(np.flatnonzero(there))
    assert (evidence.groupby("item").size() == 4).all()
    expected = alone.predict_proba(new_there, y_proba=P)
    np.testing.assert_allclose(calibrator.predict_proba(new, y_proba=P), expected, atol=1e-12)
    predicted = calibrator.out_of_sample_proba_[there]
    np.testing.assert_allclose(predicted, alone.out_of_sample_proba_, atol=1e-12)


@pytest.mark.parametrize("options", [{"n_neighbors": 3}, {"power": 3.0}, {"heterogeneity": 0.4}])
def test_the_same_in_a_forest(data, options):
    X, y, P = data
    counts = np.random.default_rng(1).integers(0, 2, N).astype(float)
    options = dict(options)
    given = {"heterogeneity": np.full(N, options.pop("heterogeneity", 0.0))}
    calibrator = SimilarityCalibrator(ForestProximity(10), **options)
    calibrator.fit(X, y, y_proba=P, sample_weight=counts)
    Q = calibrator.predict_proba(X, y_proba=P, **given)  # through the inverted index
    votes = calibrator.evidence(X, y_proba=P, top=N, **given)  # through a matrix
    for k, name in enumerate(NAMES):
        listed = votes[votes["label"] == name].groupby("item")["weight"].sum()
        np.testing.assert_allclose(listed.reindex(range(N), fill_value=0.0), Q[:, k], atol=1e-12)


@pytest.mark.filterwarnings("ignore::hetcal.WeightWarning")
def test_enormous_weights_in_a_histogram(data):
    _, y, P = data
    calibrator = get_calibrator("histogram").fit(None, y, y_proba=P, sample_weight=np.full(N, 1e80))
    Q = calibrator.predict_proba(y_proba=P)
    np.testing.assert_allclose(Q.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", list_calibrators())
def test_weights_that_sum_to_one_are_no_lack_of_data(data, name):
    X, y, P = data
    options = {
        "swc": {"similarity": ForestProximity(5)},
        "swc-hh": {
            "similarity": ForestProximity(5),
            "heterogeneity": HiddenHeterogeneity(learners=[]),
        },
        "hybrid": {"experts": ["proximity"], "n_estimators": 5},
    }
    weighted, plain = (get_calibrator(name, **options.get(name, {})) for _ in range(2))
    weighted.fit(X, y, y_proba=P, sample_weight=np.full(N, 1 / N))
    Q = plain.fit(X, y, y_proba=P, sample_weight=np.ones(N)).predict_proba(X, y_proba=P)
    np.testing.assert_allclose(weighted.predict_proba(X, y_proba=P), Q, atol=1e-9)


class Recorder(BaseEstimator):
    """An estimator of hidden heterogeneity that keeps what it was given and knows nothing."""

    def __init__(self, classes=None):
        self.classes = classes

    def fit(self, X, y, *, y_proba, sample_weight=None, groups=None):
        self.weight_, self.groups_ = sample_weight, groups
        return self

    def score_samples(self, y_proba):
        return np.full(len(y_proba), np.nan)


def test_heterogeneity_learns_of_weights_and_groups_and_may_be_unknown(data):
    X, y, P = data
    weight, groups = np.linspace(1, 2, N), np.arange(N) // 4
    forest = ForestProximity(10)
    calibrator = SimilarityCalibrator(forest, heterogeneity=Recorder())
    calibrator.fit(X, y, y_proba=P, sample_weight=weight, groups=groups)
    np.testing.assert_allclose(calibrator.heterogeneity_.weight_, weight / weight.mean())
    pairs = set(zip(groups, calibrator.heterogeneity_.groups_, strict=True))
    assert len(pairs) == N // 4  # the same groups, whatever their numbers
    everyone = SimilarityCalibrator(forest).fit(X, y, y_proba=P, sample_weight=weight)
    expected = everyone.predict_proba(X, y_proba=P)
    np.testing.assert_allclose(calibrator.predict_proba(X, y_proba=P), expected, atol=1e-12)


def test_the_wrapper_gives_what_its_calibrator_gives(data):
    X, y, _ = data
    model = FrozenEstimator(LogisticRegression().fit(X, y))
    wrapper = LocallyCalibratedClassifier(model, "swc").fit(X, y)
    output = {"y_proba": wrapper.estimator_.predict_proba(X)}
    for method in ("support", "effective_sample_size", "predict_smoothed_interval"):
        expected = getattr(wrapper.calibrator_, method)(X, **output)
        np.testing.assert_array_equal(getattr(wrapper, method)(X), expected)
    globally = LocallyCalibratedClassifier(calibrator="temperature")
    assert not hasattr(globally, "predict_smoothed_interval")
