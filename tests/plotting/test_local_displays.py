"""The curve of hidden heterogeneity, and sub-populations by name: numbers and drawings."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression

from hetcal import HiddenHeterogeneity, SimilarityCalibrator
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis import compare, learning_curve
from hetcal.heterogeneity import find_subgroups
from hetcal.plotting import (
    ComparisonDisplay,
    HeterogeneityCurveDisplay,
    HeterogeneityMapDisplay,
    LearningCurveDisplay,
    ReliabilityDisplay,
    SubgroupsDisplay,
    SupportDisplay,
)
from hetcal.plotting.heterogeneity_curve import _COLUMNS, _by_confidence


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(400, heterogeneity=1.0, miscalibration=0.5, random_state=0)


@pytest.fixture(scope="module")
def hidden(data):
    return HiddenHeterogeneity(learners=[], n_estimators=5, n_null=3).fit(
        data.X, data.y, y_proba=data.y_proba
    )


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_the_curve_is_what_the_estimator_says(hidden, data):
    table = HeterogeneityCurveDisplay.from_estimator(hidden, data.y_proba, n_points=9).frame()
    p = table["p"].to_numpy()
    assert np.isin(p, data.y_proba[:, 1]).all()
    assert (np.diff(p) > 0).all()
    said = hidden.score_samples(np.column_stack([1 - p, p]))
    np.testing.assert_allclose(table["hh"], said)
    np.testing.assert_allclose(table["hh_global"] + table["hh_local"], table["hh"])


def test_the_curve_from_predictions_is_the_same(hidden, data):
    settings = {"learners": [], "n_estimators": 5, "n_null": 3}
    display = HeterogeneityCurveDisplay.from_predictions(
        data.X, data.y, data.y_proba, n_points=9, **settings
    )
    same = HeterogeneityCurveDisplay.from_estimator(hidden, data.y_proba, n_points=9)
    pd.testing.assert_frame_equal(display.frame(), same.frame())


def test_more_classes_are_averaged_by_confidence():
    many = make_hidden_heterogeneity(200, n_classes=3, heterogeneity=1.0, random_state=0)
    hidden = HiddenHeterogeneity(radius=0.6, learners=[], n_estimators=3, n_null=2)
    hidden.fit(many.X, many.y, y_proba=many.y_proba)
    table = HeterogeneityCurveDisplay.from_estimator(hidden, many.y_proba).frame()
    assert table["p"].between(1 / 3, 1).all()
    assert table["q_value"].isna().all()
    found, sure = hidden.frame(many.y_proba), many.y_proba.max(axis=1)
    edges = np.quantile(sure, [0, 1 / 12])
    first = found["hh"][(sure < edges[1]) & found["hh"].notna()]
    assert table["hh"].iloc[0] == pytest.approx(first.mean())


def test_the_curve_is_drawn(hidden, data):
    display = HeterogeneityCurveDisplay.from_estimator(hidden, data.y_proba)
    ax = display.plot()
    lines = {line.get_gid(): line for line in ax.lines if line.get_gid()}
    np.testing.assert_array_equal(lines["hh_local"].get_ydata(), display.frame()["hh_local"])
    assert len([line for line in display.plot(parts=False).lines if line.get_gid() == "hh"]) == 1


@pytest.mark.parametrize("y_proba", [[0.2, 0.3], np.empty((0, 2))])
def test_probabilities_in_the_wrong_shape(hidden, y_proba):
    with pytest.raises(ValueError, match="one row per prediction"):
        HeterogeneityCurveDisplay.from_estimator(hidden, y_proba)


def test_subgroups_are_those_that_are_found(data):
    display = SubgroupsDisplay.from_predictions(data.frame(), data.y, data.y_proba)
    found = find_subgroups(data.frame(), data.y, y_proba=data.y_proba)
    pd.testing.assert_frame_equal(display.frame(), found)


def test_groups_of_ones_own_choice_are_drawn(hidden, data):
    table = data.frame().assign(kind=np.where(data.X[:, 0] > 0, "a $x$", "b_{"))
    fitted = HiddenHeterogeneity(learners=[], n_estimators=3, n_null=2).fit(
        table, data.y, y_proba=data.y_proba
    )
    display = SubgroupsDisplay.from_estimator(fitted, table, by="kind")
    ax = display.plot()
    dots = [line for line in ax.lines if line.get_gid() == "observed"]
    assert [line.get_xdata()[0] for line in dots] == display.frame()["observed"].tolist()
    ax.figure.canvas.draw()  # a name with dollar signs is no formula


def test_no_subgroup_is_an_empty_picture():
    calm = make_hidden_heterogeneity(200, heterogeneity=0.0, random_state=0)
    display = SubgroupsDisplay.from_predictions(calm.frame(), calm.y, calm.y_proba)
    assert display.frame().empty
    assert "none found" in [text.get_text() for text in display.plot().texts]


def test_a_table_of_something_else_is_refused():
    with pytest.raises(ValueError, match="the table lacks"):
        SubgroupsDisplay(pd.DataFrame({"rule": ["a"]}))


def test_other_ways_to_make_the_displays(hidden, data):
    X, y, P = data.X, data.y, data.y_proba
    swc = SimilarityCalibrator().fit(X, y, y_proba=P)
    pd.testing.assert_frame_equal(
        SupportDisplay.from_estimator(swc, X, y_proba=P).frame(),
        SupportDisplay.from_support(swc.support(X, y_proba=P)).frame(),
    )
    pd.testing.assert_frame_equal(
        ReliabilityDisplay.from_estimator(swc, X, y, y_proba=P).frame(),
        ReliabilityDisplay.from_predictions(y, swc.predict_proba(X, y_proba=P)).frame(),
    )
    few = {"methods": ["temperature"], "baselines": False, "n_repeats": 1, "cv": 3}
    pd.testing.assert_frame_equal(
        ComparisonDisplay.from_predictions(X, y, P, **few).frame(),
        ComparisonDisplay.from_comparison(compare(X, y, y_proba=P, **few)).frame(),
    )
    few = {"methods": ["temperature"]}
    pd.testing.assert_frame_equal(
        LearningCurveDisplay.from_predictions(X, y, P, **few).frame(),
        LearningCurveDisplay.from_learning_curve(learning_curve(X, y, y_proba=P, **few)).frame(),
    )


def test_the_map_of_a_classifier():
    X, y = make_moons(200, noise=0.3, random_state=0)
    model = LogisticRegression().fit(X[:80], y[:80])
    hidden = HiddenHeterogeneity(learners=[], n_estimators=3, n_null=2)
    hidden.fit(X[80:], y[80:], y_proba=model.predict_proba(X[80:]))
    display = HeterogeneityMapDisplay.from_estimator(model, hidden, X, resolution=6)
    panels = display.panels["LogisticRegression"]
    said = model.predict_proba(display.grid)
    np.testing.assert_allclose(panels["p"].ravel(), said[:, 1])
    np.testing.assert_allclose(panels["HH"].ravel(), hidden.score_samples(said))


def test_a_curve_by_confidence_leaves_out_where_nothing_is_known():
    confidence = np.repeat([0.4, 0.6, 0.9], 10)
    hh = np.where(np.arange(30) < 4, np.nan, confidence**2)
    found = pd.DataFrame(dict.fromkeys(_COLUMNS, hh))
    table = _by_confidence(found, confidence)
    np.testing.assert_allclose(table["p"], [0.4, 0.6, 0.9])
    np.testing.assert_allclose(table["hh"], [0.16, 0.36, 0.81])
    assert table["q_value"].isna().all()
