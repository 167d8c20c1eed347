"""Class balance: estimated, corrected, and not seen where it is not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetcal._validation import check_proba
from hetcal.advice import correct_prior, estimate_prior, measure_prior_shift
from hetcal.advice.items import CalibrationItems
from hetcal.datasets import make_hidden_heterogeneity


def shares(K):
    return st.lists(st.floats(0.01, 1), min_size=K, max_size=K).map(lambda v: np.array(v) / sum(v))


@given(shares(3), shares(3), shares(3))
def test_correcting_there_and_back_changes_nothing(p, old, new):
    P = p[None]
    there = correct_prior(P, old, new)
    np.testing.assert_allclose(there.sum(axis=1), 1)
    np.testing.assert_allclose(correct_prior(there, new, old), P, atol=1e-9)


def test_correction_is_bayes_rule():
    # Two normal classes with known frequencies: the posterior is known for any of them.
    x = np.linspace(-3, 3, 13)

    def posterior(prior):
        likelihood = np.exp(-0.5 * (x[:, None] - np.array([-1.0, 1.0])) ** 2)
        joint = likelihood * prior
        return joint / joint.sum(axis=1, keepdims=True)

    old, new = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    np.testing.assert_allclose(correct_prior(posterior(old), old, new), posterior(new))


def test_a_thinned_class_is_estimated():
    data = make_hidden_heterogeneity(20000, heterogeneity=0.0, n_classes=3, random_state=0)
    kept = (data.y != 1) | (np.random.default_rng(0).uniform(size=20000) < 0.3)
    found = estimate_prior(data.y_proba[kept], np.bincount(data.y) / 20000)
    np.testing.assert_allclose(found, np.bincount(data.y[kept]) / kept.sum(), atol=0.015)


def test_intervals_know_that_few_items_say_little():
    data = make_hidden_heterogeneity(1000, heterogeneity=0.0, random_state=0)
    new = data.sample(500, random_state=1)

    def width(n):
        items = CalibrationItems.check(data.X[:n], data.y[:n], y_proba=data.y_proba[:n])
        shift = measure_prior_shift(items, new.y_proba)
        assert not shift.shifted.any()
        return (shift.high - shift.low)[1]

    assert width(60) > 1.5 * width(1000)


def test_bad_frequencies():
    with pytest.raises(ValueError, match="one frequency >= 0 per column"):
        correct_prior([[0.5, 0.5]], [1.0], [0.5, 0.5])
    with pytest.raises(ValueError, match="new_prior sums to 2"):
        correct_prior([[0.5, 0.5]], [0.5, 0.5], [1.0, 1.0])
    with pytest.raises(ValueError, match="old_prior 0"):
        correct_prior([[0.5, 0.5]], [0.0, 1.0], [0.5, 0.5])


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_that_say_nothing_show_no_shift(seed):
    """Smoothed maps and label frequencies differ a little; that is not to be blown up."""
    rng = np.random.default_rng(seed)
    y, P = (rng.random(300) < 0.2).astype(int), rng.random(300)
    items = CalibrationItems.check(P[:, None], y, y_proba=P)
    shift = measure_prior_shift(items, check_proba(rng.random(500)))
    assert not shift.shifted.any()
