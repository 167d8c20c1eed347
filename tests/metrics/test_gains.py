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
from hetcal.metrics.scores import brier_losses
from hetcal.metrics.standard_errors import error_of_mean, mean_and_error


def losses(n=120, seed=0):
    rng = np.random.default_rng(seed)
    before = rng.uniform(0, 1, n)
    return before, before - 0.05 + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_error_is_that_of_the_items_and_that_of_the_fit(n_classes):
    worse, better = losses()
    gain, error = gain_and_error(worse, better, n_classes=n_classes)
    mean, of_items = mean_and_error(worse - better)
    of_fit = np.sqrt(16 * (n_classes - 1)) * min(worse.mean(), better.mean()) / 120
    assert (gain, error) == pytest.approx((mean, np.hypot(of_items, of_fit)))


def test_what_a_fit_costs_depends_on_the_loss():
    worse, better = losses()
    of_items = mean_and_error(worse - better)[1]
    assert gain_and_error(worse, better, metric="accuracy")[1] == pytest.approx(of_items)
    of_fit = 4 * 0.5 / 120
    found = gain_and_error(worse, better, metric="log_loss")[1]
    assert found == pytest.approx(np.hypot(of_items, of_fit))


def test_the_same_predictions_gain_nothing_for_sure():
    worse, _ = losses()
    assert gain_and_error(worse, worse) == (0.0, 0.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_copies_that_belong_together_leave_the_error_as_it_is(weighted):
    worse, better = losses()
    weight = np.random.default_rng(1).uniform(0.5, 2, 120) if weighted else None
    four = np.repeat(np.arange(120), 4)
    alone = gain_and_error(worse, better, weight)
    copies = gain_and_error(worse[four], better[four], weight[four] if weighted else None, four)
    assert copies == pytest.approx(alone, rel=0.01)
    apart = gain_and_error(worse[four], better[four], weight[four] if weighted else None)
    assert apart[1] < 0.6 * alone[1]


def test_few_groups_get_the_interval_of_student():
    rows = np.repeat(np.arange(6), 20)
    y = np.arange(120) % 2
    items = CalibrationSet.check(None, y, y_proba=np.full(120, 0.5), groups=rows, caller="test")
    worse, better = losses()
    gain = Gain.between(worse, better, items)
    error = gain_and_error(worse, better, None, rows)[1]
    assert (gain.high - gain.low) / (2 * error) == pytest.approx(2.5706, abs=1e-3)
    assert gain.less(1.0) == pytest.approx(gain.value - error * 2.5706 / 1.96, abs=1e-4)


@pytest.mark.filterwarnings("ignore:.*so uneven:hetcal.WeightWarning")
def test_unequal_groups_and_weights_have_fewer_degrees_of_freedom():
    """As in the intervals of mean losses, which know how far they are off (Satterthwaite)."""
    worse, better = losses()
    rows = np.minimum(np.arange(120) // 4, 5)  # one of six groups has 100 rows
    heavy = np.where(np.arange(120) < 3, 1000.0, 1.0)
    for given in ({"groups": rows}, {"sample_weight": heavy}):
        items = CalibrationSet.check(
            None, np.arange(120) % 2, y_proba=np.full(120, 0.5), caller="test", **given
        )
        gain = Gain.between(worse, better, items)
        _, freedom = error_of_mean(worse - better, items.weight, items.groups)
        assert freedom < 3
        error = gain_and_error(worse, better, items.weight, items.groups)[1]
        t = scipy.stats.t(freedom).ppf(0.975)
        assert (gain.high - gain.low) / 2 == pytest.approx(t * error)


def test_without_weights_and_groups_errors_are_those_of_student():
    worse, better = losses()
    error, freedom = error_of_mean(worse - better)
    assert (error, freedom) == pytest.approx((mean_and_error(worse - better)[1], 119))
    alone = np.array([1e9, 1.0, 1.0])  # one item has nearly all the weight
    assert error_of_mean(worse[:3], alone) == (mean_and_error(worse[:3], alone)[1], 1.0)
    assert np.isnan(error_of_mean(worse[:3], units=np.zeros(3, dtype=int))[0])


def test_the_interval_holds_the_gain_of_the_fitted_map_on_new_items():
    """Behind a perfect model the spread of the differences alone holds it three times in four."""
    plain = held = 0
    for seed in range(60):
        problem = make_problem("calibrated", 150, random_state=7_000 + seed)
        items = CalibrationSet.check(None, problem.y, y_proba=problem.y_proba, caller="test")
        fitted = get_calibrator("beta").fit_set(items)
        Q = out_of_sample_proba(fitted, items)
        before, after = (brier_losses(P, items.codes) for P in (items.proba, Q))
        new = make_problem("calibrated", 2000, random_state=seed)
        change = fitted.predict_proba(y_proba=new.y_proba) - new.true_proba
        truth = -float((change**2).sum(axis=1).mean())
        gain = Gain.between(before, after, items)
        error = mean_and_error(before - after)[1]
        held += gain.low <= truth <= gain.high
        plain += abs(gain.value - truth) <= 1.96 * error
    assert held >= 54  # 57 expected; fewer happens once in 50 times
    assert plain < 54
