"""Scores to expect without labels: by hand, within their intervals, and with a warning."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import hetcal
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.monitor.expected import Expectation
from hetcal.similarity import ForestProximity


def law(rng, n, wrong=0.0):
    """Return probabilities whose truth is nearer to one half where ``wrong`` is large."""
    q = rng.beta(1.0, 1.0, n)
    truth = q + wrong * (0.5 - q)
    Q = np.column_stack([1 - q, q])
    return Q, (rng.random(n) < truth).astype(np.int64)


def fitted(rng, n, wrong):
    """Return what a fitted calibrator shows of its out-of-sample predictions."""
    Q, codes = law(rng, n, wrong)
    return SimpleNamespace(
        out_of_sample_proba_=Q, classes_=np.array([0, 1]), calibration_labels=lambda: codes
    )


def test_intervals_hold_as_often_as_they_say_although_q_is_wrong():
    rng = np.random.default_rng(0)
    inside = {"accuracy": 0, "brier": 0, "log_loss": 0}
    n_runs, n = 200, 300
    for _ in range(n_runs):
        expectation = Expectation(fitted(rng, 400, wrong=0.3))
        Q, codes = law(rng, n, wrong=0.3)
        got = expectation.performance(expectation.sums(Q, 0), 0.9, 0.01)
        shown = {
            "accuracy": np.mean(Q.argmax(axis=1) == codes),
            "brier": hetcal.metrics.brier_score(codes, Q),
            "log_loss": hetcal.metrics.log_loss(codes, Q),
        }
        for name, value in shown.items():
            estimate = getattr(got, name)
            inside[name] += estimate.low <= value <= estimate.high
    for name, count in inside.items():
        assert 0.84 <= count / n_runs <= 0.96, name


def test_expected_scores_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    Q, _ = law(rng, 40)
    own = fitted(rng, 200, wrong=0.0)
    expectation = Expectation(own)
    P, codes = own.out_of_sample_proba_, own.calibration_labels()
    edges = np.quantile(P.max(axis=1), [0.2, 0.4, 0.6, 0.8])
    total = 0.0
    for q in Q:
        alike = [
            (p.argmax() == code) - p.max()
            for p, code in zip(P, codes, strict=True)
            if (edges < p.max()).sum() == (edges < q.max()).sum()
        ]
        total += q.max() + np.mean(alike)
    got = expectation.performance(expectation.sums(Q, 0), 0.95, 0.01)
    assert got.accuracy.value == pytest.approx(total / 40)
    assert got.confusion.to_numpy().sum() == pytest.approx(40)
    right = [q[1] for q in Q if q[1] > 0.5]
    assert got.confusion.loc[1, 1] == pytest.approx(sum(right))
    halves = expectation.sums(Q[:15], 1) + expectation.sums(Q[15:], 2)
    together = expectation.performance(halves, 0.95, 0.01)
    np.testing.assert_allclose(together.brier, got.brier)
    assert together.flagged == 3 / 40


def test_a_monitor_says_what_to_expect_and_when_not_to_trust_it(watch, hybrid, data):
    for calibrator in (hybrid, watch().calibrator_):
        monitor = watch(calibrator)
        X, P, y = data.new.X, data.new.y_proba, data.new.y
        got = monitor.expected_performance(X, y_proba=P)
        Q = calibrator.predict_proba(X, y_proba=P)
        shown = np.mean(calibrator.classes_[Q.argmax(axis=1)] == y)
        assert got.accuracy.low <= shown <= got.accuracy.high
        assert got.accuracy.high - got.accuracy.low < 0.2
        assert got.note is None
        assert monitor.n_seen_ == 0
        assert json.loads(json.dumps(got.to_dict()))["items"] == len(X)
        far = monitor.expected_performance(X + 6.0, y_proba=P)
        assert "hardly covered" in far.note
    with pytest.raises(ValueError, match="at least one item"):
        monitor.expected_performance(X[:0], y_proba=P[:0])


@pytest.mark.skipif(not os.environ.get("HETCAL_DATA"), reason="HETCAL_DATA names no data folder")
def test_a_bank_is_told_when_not_to_trust_what_is_expected():
    """The calls are in the order of time; long after calibration, customers answer otherwise."""
    table = pd.read_csv(Path(os.environ["HETCAL_DATA"]) / "bank-marketing.csv.gz")
    y = (table["y"] == "yes").to_numpy().astype(int)
    X = table[["age", "campaign", "euribor3m", "emp_var_rate", "cons_conf_idx"]].to_numpy(float)
    P = HistGradientBoostingClassifier(max_iter=30).fit(X[:12000], y[:12000]).predict_proba(X)
    cal, soon, late = slice(12000, 16000), slice(16000, 18000), slice(38000, 40000)
    swc = hetcal.SimilarityCalibrator(ForestProximity(30)).fit(X[cal], y[cal], y_proba=P[cal])
    monitor = hetcal.SupportMonitor(swc).fit(X[cal], y_proba=P[cal])
    shown, expected = [], []
    for rows in (soon, late):
        Q = swc.predict_proba(X[rows], y_proba=P[rows])
        shown.append(np.mean(Q.argmax(axis=1) == y[rows]))
        expected.append(monitor.expected_performance(X[rows], y_proba=P[rows]))
    assert expected[0].accuracy.low <= shown[0] <= expected[0].accuracy.high
    assert shown[1] < expected[1].accuracy.low - 0.2
    assert expected[1].flagged > 0.9
    assert "not to be trusted" in expected[1].note


def test_forgotten_items_count_less_in_what_is_expected_and_usual():
    """Expectation and bands of labels after a half-life are those of the newest items."""
    data = make_hidden_heterogeneity(300, heterogeneity=1.0, random_state=0)
    more, new = data.sample(300, random_state=1), data.sample(200, random_state=2)
    wrong = np.random.default_rng(0).integers(0, 2, 300)  # the world before: chance

    def monitored(**options):
        swc = hetcal.SimilarityCalibrator("rbf").fit(data.X, wrong, y_proba=data.y_proba)
        monitor = hetcal.SupportMonitor(swc).fit(data.X, y_proba=data.y_proba)
        return monitor.extend(more.X, more.y, y_proba=more.y_proba, **options)

    fading, cut = monitored(half_life=30), monitored(window=60)
    expected = [m.expected_performance(new.X, y_proba=new.y_proba) for m in (fading, cut)]
    shown = [
        np.mean(m.calibrator_.predict(new.X, y_proba=new.y_proba) == new.y) for m in (fading, cut)
    ]
    for estimate, accuracy in zip(expected, shown, strict=True):
        assert abs(estimate.accuracy.value - accuracy) < 0.1
    usual = fading.counts_.streams.all.usual
    assert 60 < usual.n < 120  # the items of weight near 1, and not 600
    observed = (usual.expected + usual.excess)[0] / usual.n
    assert observed == pytest.approx(shown[0], abs=0.12)  # chance would be 0.5


def test_a_hybrid_with_items_of_weight_zero_is_watched_as_without_them():
    data = make_hidden_heterogeneity(100, heterogeneity=1.0, random_state=0)
    weight = (np.arange(100) >= 9) * 1.0
    expected = []
    for rows, given in ((slice(None), weight), (slice(9, None), None)):
        hybrid = hetcal.HybridCalibrator(("proximity",), n_estimators=10)
        hybrid.fit(data.X[rows], data.y[rows], y_proba=data.y_proba[rows], sample_weight=given)
        monitor = hetcal.SupportMonitor(hybrid).fit()
        monitor.update(data.X, y_proba=data.y_proba, y=data.y)
        expected.append(monitor.expected_performance(data.X, y_proba=data.y_proba).brier)
    np.testing.assert_allclose(*expected, rtol=0.02)  # folds of other items
