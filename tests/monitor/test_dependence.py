"""Streams whose neighbours are alike: which items the tests see, and how far apart they must be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

import hetcal
from hetcal.monitor import suggest_dependence
from hetcal.monitor.dependence import autocorrelation
from hetcal.similarity import ForestProximity


def series(rng, n, phi, width=3):
    """Return stationary AR(1) series with a standard normal marginal."""
    noise = rng.normal(size=(n, width))
    noise[1:] *= np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=0)


def stated(X):
    q = 1 / (1 + np.exp(-X[:, 0]))
    return np.column_stack([1 - q, q])


@pytest.fixture(scope="module")
def calibrator():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (rng.random(400) < stated(X)[:, 1]).astype(int)
    return hetcal.SimilarityCalibrator(ForestProximity(30)).fit(X, y, y_proba=stated(X)), X


def watch(calibrator, **options):
    swc, X = calibrator
    return hetcal.SupportMonitor(swc, **options).fit(X, y_proba=stated(X))


def test_a_stationary_stream_whose_neighbours_are_alike_raises_no_alarm(calibrator):
    past = series(np.random.default_rng(1), 3000, 0.9)
    items = watch(calibrator).update(past, y_proba=stated(past))
    every = suggest_dependence(items["p_support"], items["p_distance"])
    assert 10 < every < 100
    alarms = {1: 0, every: 0}
    for seed in range(6):
        X = series(np.random.default_rng([2, seed]), 3000, 0.9)
        for dependence in alarms:
            monitor = watch(calibrator, dependence=dependence)
            monitor.update(X, y_proba=stated(X))
            alarms[dependence] += monitor.alarm_ is not None
    assert alarms == {1: 6, every: 0}
    moved = watch(calibrator, dependence=every)
    moved.update(X + 3.0, y_proba=stated(X))
    assert moved.alarm_["time"] < 20 * every
    assert moved.alarm_["time"] % every == 1


def test_the_tests_see_one_item_of_several_and_counts_see_all(calibrator):
    X = np.random.default_rng(3).normal(size=(60, 3))
    whole, parts = (watch(calibrator, dependence=7) for _ in range(2))
    seen = whole.update(X, y_proba=stated(X), by=["a", "b"] * 30)
    stream = whole.counts_.streams.all
    assert (stream.n_seen, stream.martingale.n_items) == (60, 9)
    assert stream.n_flagged == seen["flag"].sum()
    assert whole.groups().set_index("name").loc["a", "seen"] == 30
    for start, end in ((0, 1), (1, 5), (5, 30), (30, 60)):  # the second batch is not tested at all
        parts.update(X[start:end], y_proba=stated(X[start:end]))
    assert parts.counts_.streams.all.martingale.n_items == 9
    assert parts.frame()["log10_evidence"][1] == parts.frame()["log10_evidence"][0]


def test_autocorrelation_is_that_of_a_loop():
    values = series(np.random.default_rng(4), 200, 0.8, 1)[:, 0]
    centred = values - values.mean()
    by_hand = [(centred[lag:] * centred[:-lag]).sum() / (centred**2).sum() for lag in (1, 2, 3)]
    np.testing.assert_allclose(autocorrelation(values, 3), by_hand)


def test_the_slowest_score_counts_and_noise_does_not():
    rng = np.random.default_rng(5)
    fast, slow = (series(rng, 5000, phi, 1)[:, 0] for phi in (0.5, 0.95))
    assert suggest_dependence(fast) < 8
    assert suggest_dependence(fast, slow) == suggest_dependence(slow) > 20
    assert suggest_dependence(np.ones(200)) == 1


def test_noise_is_measured_by_bartletts_formula():
    """Its variance at a lag is one and twice the squares of all correlations before, over n."""
    for seed in range(20):
        values = series(np.random.default_rng([7, seed]), 400, 0.9, 1)[:, 0]
        correlations = autocorrelation(values, 100)
        lag, variance = 1, 1 / 400
        while correlations[lag - 1] > max(0.05, 2 * variance**0.5):
            variance += 2 * correlations[lag - 1] ** 2 / 400
            lag += 1
        assert suggest_dependence(values) == lag


@pytest.mark.parametrize("scores", [np.ones(99), np.append(np.ones(200), np.nan)])
def test_too_few_scores_are_refused(scores):
    with pytest.raises(ValueError, match="at least 100 finite scores"):
        suggest_dependence(scores)


def test_monitors_with_another_dependence_are_not_merged(calibrator):
    with pytest.raises(ValueError, match="dependence is 1 here and 3 there"):
        watch(calibrator).merge(watch(calibrator, dependence=3))
