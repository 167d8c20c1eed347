"""Which features have changed where support has fallen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

import hetcal
from hetcal.monitor.in_words import _feature
from hetcal.similarity import ForestProximity


def stated(x):
    q = 1 / (1 + np.exp(-x))
    return np.column_stack([1 - q, q])


@pytest.fixture(scope="module")
def bank():
    """Return customers, and a monitor that knows them."""
    rng = np.random.default_rng(0)
    n = 500
    X = pd.DataFrame({"age": rng.normal(45, 10, n), "income": rng.normal(size=n)})
    X["region"] = rng.choice(["north", "south"], n)
    P = stated(X["income"].to_numpy())
    y = (rng.random(n) < P[:, 1]).astype(int)
    swc = hetcal.SimilarityCalibrator(ForestProximity(30)).fit(X, y, y_proba=P)
    return X, P, hetcal.SupportMonitor(swc).fit(X, y_proba=P)


def test_the_feature_that_moved_comes_first(bank):
    X, P, monitor = bank
    old = X.assign(age=X["age"] + 100)
    table = monitor.what_changed(old, X, y_proba=P)
    assert table["feature"][0] == "age"
    first = table.iloc[0]
    assert first["recovered"] > 0.8
    assert first["distance"] == first["unseen"] == 1.0
    assert (first["before"], first["now"]) == (X["age"].median(), old["age"].median())
    assert (table["recovered"][1:] < 0.1).all()
    assert (table["distance"][1:] == 0.0).all()
    assert monitor.n_seen_ == 0


def test_a_new_category_is_seen_and_arrays_do_as_well(bank):
    X, P, monitor = bank
    moved = X.assign(region=np.where(np.arange(len(X)) < 400, "east", X["region"]))
    row = monitor.what_changed(moved, X, y_proba=P).set_index("feature").loc["region"]
    assert row["unseen"] == 0.8
    assert row["distance"] == pytest.approx(0.8)
    assert row["now"] == "east"
    numbers = X[["age", "income"]].to_numpy()
    y = np.arange(len(X)) % 2
    swc = hetcal.SimilarityCalibrator(ForestProximity(10)).fit(numbers, y, y_proba=P)
    watcher = hetcal.SupportMonitor(swc).fit(numbers, y_proba=P)
    table = watcher.what_changed(numbers + np.array([0.0, 30.0]), numbers, y_proba=P)
    assert table["feature"][0] == 1
    with pytest.raises(ValueError, match="the same features in X and before"):
        watcher.what_changed(numbers, numbers[:, :1], y_proba=P)


def test_distances_are_those_of_kolmogorov_and_smirnov(bank):
    X, P, monitor = bank
    moved = X.assign(age=2 * X["age"] - 45, income=X["income"].where(X["income"] > 0))
    table = monitor.what_changed(moved, X, y_proba=P).set_index("feature")
    below, above = moved["age"] < X["age"].min(), moved["age"] > X["age"].max()
    assert min(below.sum(), above.sum()) > 5
    assert table.loc["age", "unseen"] == pytest.approx(below.mean() + above.mean())
    for name in ("age", "income"):
        expected = ks_2samp(X[name], moved[name].dropna()).statistic
        assert table.loc[name, "distance"] == pytest.approx(expected)


def test_nothing_flagged_nothing_recovered(bank):
    X, P, monitor = bank
    strict = hetcal.SupportMonitor(monitor.calibrator_, rate=1e-6).fit(X, y_proba=P)
    table = strict.what_changed(X, X, y_proba=P)
    assert (table["recovered"] == 0.0).all()


def test_large_numbers_are_written_whole():
    row = {"before": 22020.4, "now": 440400.0, "unseen": 0.0, "recovered": 0.0, "feature": "income"}
    assert _feature(row) == "income (median 22020 before, 440400 now)"
