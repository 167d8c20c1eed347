"""Means with their standard errors and intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import skew
from scipy.stats import t as student

from hetcal.metrics.standard_errors import (
    effective_items,
    error_of_mean,
    interval_of_mean,
    mean_and_error,
    within_one_se,
)


def wilson(share, n):
    """Wilson's interval of a share, written down anew."""
    z = 1.959964
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return centre - half, centre + half


@pytest.mark.parametrize("events", [2, 10, 190])
def test_interval_of_a_share_is_near_wilsons(events):
    losses = np.r_[np.ones(events), np.zeros(200 - events)]
    np.testing.assert_allclose(interval_of_mean(losses), wilson(events / 200, 200), atol=0.004)


def test_interval_of_symmetric_losses_is_students():
    losses = np.r_[np.arange(15.0), -np.arange(15.0)]
    mean, error = mean_and_error(losses)
    half = student.ppf(0.95, 29) * error
    np.testing.assert_allclose(
        interval_of_mean(losses, confidence=0.9), [mean - half, mean + half], atol=1e-9
    )


def test_equal_groups_have_students_degrees_of_freedom():
    rng = np.random.default_rng(0)
    sums = rng.normal(size=8)
    losses = np.repeat(np.r_[sums, -sums], 5)  # symmetric, sixteen groups
    units = np.repeat(np.arange(16), 5)
    _, error = mean_and_error(losses, units=units)
    low, high = interval_of_mean(losses, units=units)
    assert (high - low) / 2 == pytest.approx(student.ppf(0.975, 15) * error)


def test_degrees_of_freedom_are_those_of_the_quadratic_form():
    """The closed form against the trace of the matrix it stands for."""
    from hetcal.metrics.standard_errors import _error_of_units

    rng = np.random.default_rng(1)
    units = np.r_[np.arange(7), rng.integers(0, 7, 40)]
    share = rng.random(47)
    share /= share.sum()
    residual = rng.normal(size=7)
    n_items = 0.6 / (share @ share)
    mass, apart = np.bincount(units, share), np.bincount(units, share**2)
    alike = (1 / (n_items * apart.sum()) - 1) / (mass @ mass / apart.sum() - 1)
    variance = (1 - alike) * apart + alike * mass**2
    centring = np.eye(7) - np.outer(mass, np.ones(7))
    covariance = centring @ np.diag(variance) @ centring.T
    ratio = variance / np.diag(covariance)
    form = np.sqrt(np.outer(ratio, ratio)) * covariance
    error, freedom = _error_of_units(residual, share, units, n_items)
    assert error == pytest.approx(np.sqrt(ratio @ residual**2))
    assert freedom == pytest.approx(np.trace(form) ** 2 / np.sum(form * form))


def test_interval_of_a_mean_holds_with_few_unequal_groups():
    rng = np.random.default_rng(2)
    sizes = np.array([40, 25, 12, 8, 8, 5, 3, 2, 1, 1])
    units = np.repeat(np.arange(10), sizes)
    held = []
    for _ in range(400):
        losses = rng.normal(size=10)[units] + rng.normal(size=len(units))
        low, high = interval_of_mean(losses, units=units)
        held.append(low <= 0 <= high)
    assert np.mean(held) >= 0.92  # the usual interval holds in 0.80


def test_rows_without_weight_and_groups_of_them_say_nothing():
    rng = np.random.default_rng(3)
    losses, units = rng.random(30), np.repeat(np.arange(6), 5)
    weight = np.r_[np.ones(25), np.zeros(5)]
    found = interval_of_mean(losses, weight, units)
    np.testing.assert_allclose(found, interval_of_mean(losses[:25], units=units[:25]))
    for given in (units, None):
        kept = None if given is None else given[:25]
        error = mean_and_error(losses, weight, given)[1]
        assert error == pytest.approx(mean_and_error(losses[:25], units=kept)[1])
        of_mean = error_of_mean(losses, weight, given)
        np.testing.assert_allclose(of_mean, error_of_mean(losses[:25], units=kept))


def test_the_ends_are_where_the_variance_has_grown_with_the_mean():
    losses = np.random.default_rng(5).exponential(size=40)
    n, t = len(losses), student.ppf(0.975, 39)
    error, skewness = losses.std(ddof=1) / np.sqrt(n), skew(losses) / np.sqrt(n)
    # z² = t² (1 + c γ z), with the c that makes the ends Hall's
    z = np.roots([1, -(2 * t**2 + 1) / 3 * skewness, -(t**2)])
    expected = losses.mean() + np.sort(z) * error
    np.testing.assert_allclose(interval_of_mean(losses), expected)


def test_groups_whose_items_cancel_are_worth_no_more_than_their_items():
    losses = np.tile([0.0, 1.0], 20) + 0.01 * np.arange(40)
    assert effective_items(losses, None, np.arange(40) // 2) == pytest.approx(40)
    assert effective_items(losses, None, np.zeros(40, dtype=int)) == pytest.approx(1)


def test_the_best_is_among_the_best_whatever_its_error():
    assert within_one_se([0.2, 0.3], [np.nan, 0.01]).tolist() == [True, False]


def test_equal_losses_and_single_units():
    assert interval_of_mean(np.full(9, 0.3)) == pytest.approx((0.3, 0.3))
    assert np.isnan(interval_of_mean(np.array([0.2]))).all()
    assert np.isnan(interval_of_mean(np.array([0.2, 0.4]), units=np.array([0, 0]))).all()


def test_rare_losses_hold_also_where_none_was_seen():
    """One item in 80 costs 0.9: of 100 items three in ten samples have none."""
    rng = np.random.default_rng(0)
    cost = np.tile([0.0, 0.9], (100, 1))
    held = certain = 0
    for _ in range(300):
        losses = 0.9 * (rng.random(100) < 1 / 80)
        low, high = interval_of_mean(losses, by_label=cost)
        held += low <= 0.9 / 80 <= high
        low, high = interval_of_mean(losses)
        certain += low == high
    assert held >= 280
    assert certain > 60


def test_equal_losses_are_certain_where_no_label_changes_them():
    half = interval_of_mean(np.full(50, 0.5), by_label=np.full((50, 2), 0.5))
    assert half == pytest.approx((0.5, 0.5), abs=1e-12)
    low, high = interval_of_mean(np.full(50, 0.1), by_label=np.tile([0.1, 1.1], (50, 1)))
    assert (low, high) == pytest.approx((0.1, 0.1 + wilson(0.0, 50)[1]), abs=0.004)


@pytest.mark.parametrize("heavy", [1e5, 1e6, 1e9, 1e16, 1e300])
@pytest.mark.parametrize("in_groups", [False, True])
def test_one_unit_with_nearly_all_the_weight_has_no_interval(heavy, in_groups):
    losses = np.random.default_rng(0).random(40)
    units = np.arange(40) // 2 if in_groups else None
    assert np.isnan(interval_of_mean(losses, np.r_[heavy, np.ones(39)], units)).all()


@pytest.mark.parametrize("right", [0.0, 1.0])
def test_an_accuracy_without_exception_is_not_certain(right):
    given = {"metric": "accuracy", "by_label": np.tile([0.0, 1.0], (200, 1))}
    found = interval_of_mean(np.full(200, right), **given)
    np.testing.assert_allclose(found, wilson(right, 200), atol=0.001)
    pairs = interval_of_mean(np.full(200, right), units=np.arange(200) // 2, **given)
    np.testing.assert_allclose(pairs, wilson(right, 100), atol=0.001)


@pytest.mark.parametrize(("metric", "most"), [("accuracy", 1.0), ("brier", 9.0), ("log_loss", 9.0)])
def test_no_interval_reaches_beyond_what_a_metric_can_be(metric, most):
    low, high = interval_of_mean(np.array([0.0, 1.0]), metric=metric)
    assert low == 0.0
    assert 0.5 < high <= most
    assert interval_of_mean(np.array([0.0, 1.0]))[0] < 0  # a difference may be negative
