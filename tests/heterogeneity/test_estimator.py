"""HiddenHeterogeneity: values against plain computations, invariances, containers, errors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from hetcal.datasets import make_hidden_heterogeneity
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.kernels import use_core
from hetcal.kernels._backend import _native

COLUMNS = [
    "hh",
    "hh_raw",
    "null_mean",
    "hh_global",
    "hh_local",
    "standard_error",
    "p_value",
    "q_value",
    "n_neighbors",
    "status",
]
CORES = ["pure"] + ([] if _native is None else ["native"])


def quick(**options):
    return HiddenHeterogeneity(**({"n_estimators": 10, "n_null": 5} | options))


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(400, heterogeneity=0.9, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return quick().fit(data.X, data.y, y_proba=data.y_proba)


def test_frame_has_the_documented_columns_and_adds_up(data, fitted):
    table = fitted.frame(data.y_proba)
    assert list(table.columns) == COLUMNS
    assert list(table.index) == list(range(400))
    known = table.dropna()
    np.testing.assert_allclose(known["hh"], known["hh_raw"] - known["null_mean"])
    np.testing.assert_allclose(known["hh"], known["hh_global"] + known["hh_local"])
    assert known["hh"].between(-2, 2).all()
    assert known["p_value"].between(0, 1).all()
    assert (known["q_value"] >= known["p_value"]).all()
    np.testing.assert_array_equal(fitted.score_samples(data.y_proba), table["hh"])


def test_raw_value_is_the_plain_out_of_bag_gain(data):
    """One ball with everything; the forest's out-of-bag Brier score by scikit-learn."""
    P = np.full((400, 2), 0.5)
    hidden = quick(n_estimators=60).fit(data.X, data.y, y_proba=P)
    forest = RandomForestClassifier(60, max_features=None, oob_score=True, random_state=0)
    oob = forest.fit(data.X.astype(np.float32), data.y).oob_decision_function_[:, 1]
    unpruned = 0.5 - np.mean(2 * (oob - data.y) ** 2)
    raw = hidden.frame(P[:1])["hh_raw"][0]
    assert raw >= unpruned - 0.01  # complexity 0 is one of those tried
    assert raw < unpruned + 0.2
    assert hidden.frame(P[:1])["n_neighbors"][0] == 400


def test_values_do_not_depend_on_order_or_company(data, fitted):
    P = data.y_proba[:50]
    together = fitted.frame(P)
    order = np.random.default_rng(0).permutation(50)
    pd.testing.assert_frame_equal(
        fitted.frame(P[order]), together.take(order).reset_index(drop=True)
    )
    pd.testing.assert_frame_equal(fitted.frame(P[7:8]), together.iloc[7:8].reset_index(drop=True))


def test_predictions_far_from_the_net_get_their_own_ball(data, fitted):
    lonely = np.array([[1e-9, 1 - 1e-9], [0.5, 0.5]])
    lonely_first = fitted.frame(lonely)
    assert list(lonely_first.columns) == COLUMNS
    pd.testing.assert_frame_equal(
        fitted.frame(lonely[::-1]).iloc[::-1].reset_index(drop=True), lonely_first
    )


@pytest.mark.parametrize("kind", ["net", "overlap", "item"])
def test_kinds_of_neighbourhoods_agree(data, kind):
    hidden = quick(neighbourhoods=kind, n_estimators=30).fit(data.X, data.y, y_proba=data.y_proba)
    hh = hidden.score_samples(data.y_proba)
    assert np.isfinite(hh).mean() > 0.9
    assert abs(np.nanmean(hh) - data.true_local_gain) < 0.05


def test_number_of_jobs_does_not_matter(data, fitted):
    other = quick(n_jobs=2).fit(data.X, data.y, y_proba=data.y_proba)
    pd.testing.assert_frame_equal(other.cells_, fitted.cells_)
    assert other.p_value_ == fitted.p_value_


@pytest.mark.parametrize("core", CORES)
def test_both_cores_give_the_test_the_same(data, fitted, core):
    few = slice(0, 150)
    results = {}
    for name in {core, "pure"}:
        with use_core(name):
            hidden = quick(n_estimators=3, n_null=3, radius=0.3)
            results[name] = hidden.fit(data.X[few], data.y[few], y_proba=data.y_proba[few])
    assert results[core].statistic_ == pytest.approx(results["pure"].statistic_, abs=1e-9)
    assert abs(results[core].hh_mean_ - results["pure"].hh_mean_) < 0.1


def test_relabelled_classes_give_the_same_values(data, fitted):
    names = np.array(["yes", "no"])  # reverses the sorted order
    other = quick().fit(data.X, names[data.y], y_proba=data.y_proba[:, ::-1])
    assert list(other.classes_) == ["no", "yes"]
    assert other.hh_mean_ == pytest.approx(fitted.hh_mean_, abs=0.03)
    assert other.hh_global_mean_ == pytest.approx(fitted.hh_global_mean_, abs=0.01)
    named = quick(classes=names).fit(data.X, names[data.y], y_proba=data.y_proba)
    assert named.hh_mean_ == fitted.hh_mean_


def test_tables_weights_and_groups(data):
    frame = data.frame()
    groups = np.arange(400) // 2
    hidden = quick().fit(frame, data.y, y_proba=data.y_proba, groups=groups)
    assert 0 <= hidden.p_value_ <= 1
    assert hidden.score_samples(data.y_proba).shape == (400,)
    weight = np.ones(400)
    weight[:100] = 0
    part = quick().fit(frame, data.y, y_proba=data.y_proba, sample_weight=weight)
    without = quick().fit(frame[100:], data.y[100:], y_proba=data.y_proba[100:])
    pd.testing.assert_frame_equal(part.cells_, without.cells_)
    double = quick().fit(frame, data.y, y_proba=data.y_proba, sample_weight=np.full(400, 2.0))
    assert double.statistic_ == pytest.approx(
        quick().fit(frame, data.y, y_proba=data.y_proba).statistic_, abs=0.2
    )


def test_any_classifier_as_local_model(data):
    hidden = quick(local_model=LogisticRegression(), n_null=2, radius=0.5)
    hidden.fit(data.X, data.y, y_proba=data.y_proba)
    assert np.isfinite(hidden.hh_mean_)
    assert clone(hidden).local_model is not hidden.local_model


def test_missing_class_and_several_classes():
    data = make_hidden_heterogeneity(300, n_classes=4, heterogeneity=0.5, random_state=0)
    rows = data.y != 3
    hidden = quick(classes=[0, 1, 2, 3], radius="auto")
    hidden.fit(data.X[rows], data.y[rows], y_proba=data.y_proba[rows])
    assert hidden.radius_ > 0.1
    assert hidden.frame(data.y_proba)["status"].isin(["ok", "too few neighbours"]).mean() > 0.9


def test_status_says_why_there_is_no_value():
    rng = np.random.default_rng(0)
    P = np.vstack([np.tile([0.5, 0.5], (60, 1)), np.tile([0.99, 0.01], (60, 1)), [[0.05, 0.95]]])
    y = np.concatenate([rng.integers(0, 2, 60), np.zeros(60, int), [1]])
    hidden = quick().fit(rng.normal(size=(121, 2)), y, y_proba=P)
    found = hidden.frame([[0.5, 0.5], [0.99, 0.01], [0.05, 0.95], [0.2, 0.8]])
    assert found["status"].tolist() == ["ok", "one class", "too few neighbours", "no neighbours"]
    assert found["hh"].isna().tolist() == [False, False, True, True]
    assert found["n_neighbors"].tolist() == [60, 60, 1, 0]
    assert hidden.covered_ == pytest.approx(120 / 121)


def test_without_null_draws_nothing_is_corrected(data):
    hidden = quick(n_null=0).fit(data.X, data.y, y_proba=data.y_proba)
    assert np.isnan(hidden.p_value_)
    assert (hidden.cells_["null_mean"].dropna() == 0).all()


def test_errors_say_what_to_do(data):
    fit = {"X": data.X, "y": data.y, "y_proba": data.y_proba}
    for options, words in [
        ({"estimate": "loo"}, "estimate must be one of"),
        ({"radius": -1}, "radius must be in"),
        ({"neighbourhoods": "grid"}, "neighbourhoods must be"),
        ({"n_null": -1}, "n_null must be"),
        ({"n_estimators": 0}, "n_estimators must be"),
        ({"local_model": 3}, "predict_proba"),
        (
            {"estimate": "paper", "local_model": LogisticRegression()},
            "whose local models are forests",
        ),
    ]:
        with pytest.raises(ValueError, match=words):
            HiddenHeterogeneity(**options).fit(**fit)
    paper = HiddenHeterogeneity(estimate="paper").fit(**fit)
    with pytest.raises(ValueError, match="has no test"):
        paper.test()
    with pytest.raises(ValueError, match="3 columns"):
        paper.frame(np.full((2, 3), 1 / 3))


def test_the_whole_set_test_is_an_object(fitted):
    test = fitted.test()
    assert (test.statistic, test.p_value, test.n_null) == (fitted.statistic_, fitted.p_value_, 5)


def test_merged_cells_serve_every_item():
    """Many classes with sure predictions: merged cells lie far apart, and nobody is forgotten."""
    rng = np.random.default_rng(0)
    P = np.maximum(rng.dirichlet(np.full(5, 0.1), 200), 1e-12)
    P /= P.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(5, p=p) for p in P])
    hidden = HiddenHeterogeneity(
        radius="auto", neighbourhoods="overlap", n_estimators=5, n_null=3, random_state=0
    ).fit(rng.normal(size=(200, 3)), y, y_proba=P)
    assert hidden.covered_ == pytest.approx(1.0)
    assert np.isfinite(hidden.hh_mean_)
