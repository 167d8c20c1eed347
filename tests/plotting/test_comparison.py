"""Displays of comparisons and learning curves: what they hold, what they draw."""

from __future__ import annotations

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from hetcal import compare, learning_curve
from hetcal.calibration import TemperatureScaling, Uncalibrated
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.plotting import ComparisonDisplay, LearningCurveDisplay


class Refuses(Uncalibrated):
    def fit(self, X, y, **options):
        raise RuntimeError("out of order")


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(150, miscalibration=1.0, random_state=0)


@pytest.fixture(scope="module")
def comparison(data):
    return compare(
        data.X, data.y, y_proba=data.y_proba, n_repeats=1, cv=2, baselines=["boosting on X"],
        methods={
            "temperature": TemperatureScaling(),
            "uncalibrated": Uncalibrated(),
            "broken": Refuses(),
        },
    )  # fmt: skip


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize(("metric", "best"), [("brier", "low"), ("accuracy", "high")])
def test_the_best_is_on_top(metric, best):
    rows = {"method": ["low", "high"], "kind": "calibrator", "metric": metric, "value": [0.1, 0.9]}
    both = SimpleNamespace(frame=lambda: pd.DataFrame(rows))
    display = ComparisonDisplay.from_comparison(both, metric=metric)
    assert display.frame()["method"][0] == best


@pytest.mark.parametrize("metric", ["brier", "log_loss", "ece", "accuracy"])
def test_methods_stand_in_order_and_baselines_apart(comparison, metric):
    display = ComparisonDisplay.from_comparison(comparison, metric=metric)
    rows = display.frame()
    assert rows["kind"].tolist() == ["calibrator"] * 3 + ["baseline"]
    assert rows["method"].iloc[2] == "broken"
    first, second = rows["value"].iloc[:2]
    assert first >= second if metric == "accuracy" else first <= second
    ax = display.plot()
    drawn = {line.get_gid(): line.get_xdata()[0] for line in ax.lines if line.get_gid()}
    expected = rows.dropna(subset=["value"]).set_index("method")["value"].to_dict()
    assert drawn == pytest.approx(expected)
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == [
        *rows["method"].iloc[:2], "broken", "boosting on X",
    ]  # fmt: skip
    bold = [label.get_fontweight() == "bold" for label in labels]
    assert bold == rows["within_one_se"].tolist()
    texts = [text.get_text() for text in ax.texts]
    assert "best" in texts
    assert "failed, see the note" in texts
    assert metric.split("_")[0] in ax.get_xlabel().lower() or metric == "ece"


def test_the_best_is_at_the_dotted_line(comparison):
    ax = comparison.plot("brier")
    rows = comparison.frame().query("metric == 'brier'")
    best = rows.loc[rows["best"], "value"].iloc[0]
    assert any(np.allclose(line.get_xdata(), best) and not line.get_gid() for line in ax.lines)
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first row is on top


def test_a_given_axes_is_used(comparison):
    _, ax = plt.subplots()
    assert comparison.plot(ax=ax) is ax


def test_curves_show_what_the_frame_holds(data):
    curve = learning_curve(
        data.X, data.y, y_proba=data.y_proba, methods=["uncalibrated", "temperature"], n_repeats=1
    )
    display = LearningCurveDisplay.from_learning_curve(curve, metric="log_loss")
    rows = display.frame()
    ax = display.plot()
    for line in ax.lines:
        part = rows[rows["method"] == line.get_gid()]
        np.testing.assert_allclose(line.get_ydata(), part["value"])
    assert [label.get_text() for label in ax.get_xticklabels()] == [str(n) for n in curve.sizes]
    assert len(ax.collections) == 2
    assert not display.plot(errors=False).collections
    assert curve.plot().get_ylabel() == "Brier score"


def test_unknown_metrics_are_refused(comparison):
    with pytest.raises(ValueError, match="metric must be one of 'brier'"):
        ComparisonDisplay.from_comparison(comparison, metric="auc")
    with pytest.raises(ValueError, match="metric must be one of 'brier'"):
        LearningCurveDisplay.from_learning_curve(None, metric="ece")
