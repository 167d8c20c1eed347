"""Gains and their intervals: formulas, groups, and coverage of what is gained on new items."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from hetcal.calibration import get_calibrator
from hetcal.calibration.fitting import out_of_sample_proba
from hetcal.data import CalibrationSet
from hetcal.datasets import make_problem
from hetcal.metrics.gains import Gain, gain_and_error
from hetcal.metrics.scores import brier_losses, log_losses, losses_by_label
from hetcal.metrics.standard_errors import error_of_mean, mean_and_error

N = 120


def said(K=2, seed=0):
    """Return labels, and probabilities before and after a repair."""
    rng = np.random.default_rng(seed)
    after = rng.dirichlet(np.full(K, 1.5), N)
    before = after**2 / (after**2).sum(axis=1, keepdims=True)
    return (after.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1), before, after


def items_of(y, P, **given):
    given.setdefault("classes", np.arange(P.shape[1]))
    return CalibrationSet.check(None, y, y_proba=P, caller="test", **given)


def losses_of(*probabilities, metric="brier"):
    return [losses_by_label(P, metric) for P in probabilities]


@pytest.mark.parametrize(("K", "seed", "more"), [(2, 0, "drawn"), (2, 1, "seen"), (5, 0, "drawn")])
def test_gain_and_interval_against_a_naive_loop(K, seed, more):
    """The labels that came vary less than those that the probabilities expect, or more."""
    y, before, after = said(K, seed)
    items = items_of(y, before)

    def loss(P, i, label):
        return sum((P[i, k] - (k == label)) ** 2 for k in range(K))

    gains = [loss(before, i, y[i]) - loss(after, i, y[i]) for i in range(N)]
    drawn = [
        (loss(before, i, k) - loss(after, i, k), after[i, k] / N)
        for i in range(N)
        for k in range(K)
    ]
    mean = sum(gain * chance for gain, chance in drawn)
    second, third = (sum((g - mean) ** m * chance for g, chance in drawn) for m in (2, 3))
    spread = {"seen": np.std(gains, ddof=1), "drawn": np.sqrt(second)}
    assert max(spread, key=spread.get) == more
    of_items = spread[more] / np.sqrt(N)
    scores = [np.mean([loss(P, i, y[i]) for i in range(N)]) for P in (before, after)]
    of_fit = np.sqrt(16 * (K - 1)) * min(scores) / N
    error = np.hypot(of_items, of_fit)
    found = Gain.between(before, after, items)
    assert gain_and_error(*losses_of(before, after), after, items) == pytest.approx(
        (np.mean(gains), error)
    )
    # The ends solve z^2 = t^2 (1 + c g z), where only the labels' part of the error is skewed.
    t = scipy.stats.t(N - 1).ppf(0.975)
    skewness = third / second**1.5 / np.sqrt(N) * of_items / error
    for end in (found.low, found.high):
        z = (end - np.mean(gains)) / error
        grows = (2 * t**2 + 1) / (3 * t**2) * skewness * z
        assert z**2 == pytest.approx(t**2 * (1 + grows))
    assert found.low < found.value < found.high
    assert found.less(1.0) == pytest.approx(found.value - (found.high - found.low) / 3.92)


def test_labels_that_bear_out_wrong_probabilities_do_not_make_the_interval_short():
    """Certain and right 60 times: the repaired probabilities expect six errors."""
    before, after = (np.tile([[1 - q, q], [q, 1 - q]], (30, 1)) for q in (0.999, 0.9))
    gain = Gain.between(before, after, items_of((np.arange(60) + 1) % 2, before))
    per_error = np.ptp(losses_of(before)[0][0] - losses_of(after)[0][0])
    assert gain.value == pytest.approx(-0.02, abs=1e-3)
    assert gain.high - gain.value > 2 * per_error * np.sqrt(0.9 * 0.1 / 60)
    assert gain.high - gain.value > 1.5 * (gain.value - gain.low)


def test_what_a_fit_costs_depends_on_the_loss():
    y, before, after = said()
    items = items_of(y, before)
    for metric, of_fit in (("accuracy", 0.0), ("log_loss", 4 * 0.5 / N)):
        worse, better = losses_of(0.5 * before, before[:, ::-1], metric=metric)
        gains = (worse - better)[np.arange(N), y]
        drawn = (worse - better).ravel()
        of_items = max(
            mean_and_error(gains)[1], np.sqrt(np.cov(drawn, aweights=after.ravel(), ddof=0) / N)
        )
        found = gain_and_error(worse, better, after, items, metric=metric)[1]
        assert found == pytest.approx(np.hypot(of_items, of_fit))


def test_losses_by_label_are_the_losses_with_each_label():
    _, P, _ = said(4)
    for k in range(4):
        codes = np.full(N, k)
        brier, log = losses_of(P)[0], losses_of(P, metric="log_loss")[0]
        np.testing.assert_allclose(brier[:, k], brier_losses(P, codes))
        np.testing.assert_allclose(log[:, k], log_losses(P, codes))
    hits = losses_of(P, metric="accuracy")[0]
    np.testing.assert_array_equal(hits.argmax(axis=1), P.argmax(axis=1))
    np.testing.assert_array_equal(hits.sum(axis=1), 1)


def test_the_same_predictions_gain_nothing_for_sure():
    y, before, _ = said()
    items = items_of(y, before)
    assert gain_and_error(*losses_of(before, before), before, items) == (0.0, 0.0)
    assert Gain.between(before, before, items) == Gain(0.0, 0.0, 0.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_copies_that_belong_together_leave_the_interval_as_it_is(weighted):
    y, before, after = said()
    weight = np.random.default_rng(1).uniform(0.5, 2, N) if weighted else np.ones(N)
    four = np.repeat(np.arange(N), 4)

    def ends(rows, **given):
        items = items_of(y[rows], before[rows], sample_weight=weight[rows], **given)
        gain = Gain.between(before[rows], after[rows], items)
        return np.array([gain.value, gain.low, gain.high])

    alone, copies, apart = ends(np.arange(N)), ends(four, groups=four), ends(four)
    assert copies == pytest.approx(alone, rel=0.01)
    assert np.ptp(apart) < 0.6 * np.ptp(alone)


def freedom_of(items, before, after):
    """Return the degrees of freedom for which an interval of this width is Student's."""
    gain = Gain.between(before, after, items)
    losses = losses_of(before, after)
    worse, better = (loss[np.arange(N), items.codes] for loss in losses)
    _, freedom = error_of_mean(worse - better, items.weight, items.groups)
    _, error = gain_and_error(*losses, after, items)
    return freedom, 1.96 * gain.standard_error / error, scipy.stats.t(freedom).ppf(0.975)


def test_few_groups_get_the_interval_of_student():
    y, before, after = said()
    freedom, half, t = freedom_of(items_of(y, before, groups=np.arange(N) // 20), before, after)
    assert freedom == pytest.approx(5, rel=0.01)
    assert half == pytest.approx(t, rel=0.3)  # skewness makes it a little wider
    assert half >= t


@pytest.mark.filterwarnings("ignore:.*so uneven:hetcal.WeightWarning")
def test_unequal_groups_and_weights_have_fewer_degrees_of_freedom():
    """As in the intervals of mean losses, which know how far they are off (Satterthwaite)."""
    y, before, after = said()
    rows = np.minimum(np.arange(N) // 4, 5)  # one of six groups has 100 rows
    heavy = np.where(np.arange(N) < 3, 1000.0, 1.0)
    for given in ({"groups": rows}, {"sample_weight": heavy}):
        freedom, half, t = freedom_of(items_of(y, before, **given), before, after)
        assert freedom < 3
        assert half >= t


def test_without_weights_and_groups_errors_are_those_of_student():
    losses = np.random.default_rng(0).uniform(size=N)
    error, freedom = error_of_mean(losses)
    assert (error, freedom) == pytest.approx((mean_and_error(losses)[1], 119))
    alone = np.array([1e9, 1.0, 1.0])  # one item has nearly all the weight
    assert error_of_mean(losses[:3], alone) == (mean_and_error(losses[:3], alone)[1], 1.0)
    assert np.isnan(error_of_mean(losses[:3], units=np.zeros(3, dtype=int))[0])


def test_the_interval_holds_the_gain_of_the_fitted_map_on_new_items():
    """Behind a perfect model the spread of the differences alone holds it three times in four."""
    plain = held = 0
    for seed in range(60):
        problem = make_problem("calibrated", 150, random_state=7_000 + seed)
        items = CalibrationSet.check(None, problem.y, y_proba=problem.y_proba, caller="test")
        fitted = get_calibrator("beta").fit_set(items)
        Q = out_of_sample_proba(fitted, items)
        new = make_problem("calibrated", 2000, random_state=seed)
        change = fitted.predict_proba(y_proba=new.y_proba) - new.true_proba
        truth = -float((change**2).sum(axis=1).mean())
        gain = Gain.between(items.proba, Q, items)
        before, after = (brier_losses(P, items.codes) for P in (items.proba, Q))
        error = mean_and_error(before - after)[1]
        held += gain.low <= truth <= gain.high
        plain += abs(gain.value - truth) <= 1.96 * error
    assert held >= 54  # 57 expected; fewer happens once in 50 times
    assert plain < 54


@pytest.mark.parametrize("weighted", [False, True])
def test_nothing_gains_more_than_the_whole_brier_score(weighted):
    """Wrong probabilities that a repair sets right; what counts errors does not know of the end."""
    y = np.arange(24) % 2
    before, after = np.full((24, 2), 0.5), np.where(np.eye(2)[y] > 0, 0.99, 0.01)
    weight = np.linspace(1, 3, 24) if weighted else None
    items = items_of(y, before, sample_weight=weight)
    gain = Gain.between(before, after, items)
    brier = np.average(brier_losses(before, y), weights=weight)
    assert gain.value < brier
    assert gain.high == pytest.approx(brier)
    assert 2 * 1.96 * gain.standard_error > gain.high - gain.low
