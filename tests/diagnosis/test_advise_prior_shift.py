"""Class balance: estimated, corrected, and not seen where it is not."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm

from hetcal._validation import check_proba
from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis import correct_prior, estimate_prior, measure_prior_shift
from hetcal.diagnosis.checks import check_class_balance
from hetcal.diagnosis.prior_shift import _Balance


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
        items = CalibrationSet.check(
            data.X[:n], data.y[:n], y_proba=data.y_proba[:n], caller="test"
        )
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
    items = CalibrationSet.check(P[:, None], y, y_proba=P, caller="test")
    shift = measure_prior_shift(items, check_proba(rng.random(500)))
    assert not shift.shifted.any()


def climbed(P, old, n_steps=200_000):
    """Expectation-maximisation, as slowly as it takes."""
    prior = old
    for _ in range(n_steps):
        Q = P * (prior / old)
        updated = (Q / Q.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(updated - prior).max() < 1e-13:
            break
        prior = updated
    return prior


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("K", [2, 3, 7])
def test_the_estimate_is_where_expectation_maximisation_ends(K, sharpness):
    rng = np.random.default_rng(K)
    P = np.exp(sharpness * rng.normal(size=(150, K)))
    P /= P.sum(axis=1, keepdims=True)
    old = P.mean(axis=0) * rng.uniform(0.98, 1.02, K)
    old /= old.sum()
    np.testing.assert_allclose(estimate_prior(P, old), climbed(P, old), atol=2e-4)


def test_certain_probabilities_are_counted():
    P = np.eye(3)[[0, 0, 0, 1, 2]]
    np.testing.assert_allclose(estimate_prior(P, [0.2, 0.2, 0.6]), [0.6, 0.2, 0.2])


def flat(n, rng):
    return check_proba(expit(0.3 * rng.normal(size=n)))


def test_the_same_items_again_show_no_shift():
    """Maps are smoothed, so that the mean of their probabilities is not quite the frequency."""
    data = make_hidden_heterogeneity(80, heterogeneity=0.0, random_state=0)
    odds = data.y_proba * [1.0, 30.0]
    items = CalibrationSet.check(
        data.X, data.y, y_proba=odds / odds.sum(axis=1, keepdims=True), caller="test"
    )
    shift = measure_prior_shift(items, items.output)
    np.testing.assert_allclose(shift.new, shift.old, atol=1e-5)
    assert (shift.low < 0).all()
    assert (shift.high > 0).all()


def test_probabilities_that_say_nothing_take_no_more_steps(monkeypatch):
    """Expectation-maximisation creeps there: it took seven times as long."""
    rng = np.random.default_rng(0)
    P = flat(3000, rng)
    old = P.mean(axis=0) * [0.98, 1.02]
    steps = []
    module = sys.modules[estimate_prior.__module__]
    solve = module.nnls
    monkeypatch.setattr(module, "nnls", lambda *a, **k: steps.append(0) or solve(*a, **k))
    prior = estimate_prior(P, old / old.sum())
    assert 0 < len(steps) <= 15
    ratio = P / (old / old.sum())
    assert (ratio / (ratio @ prior)[:, None]).mean(axis=0).max() < 1 + 1e-5


def behind_a_useless_model(seed, kept):
    """Draw items whose probabilities say nothing, and new ones with a part of class 1."""
    rng = np.random.default_rng([seed, 1])
    data = make_hidden_heterogeneity(500, heterogeneity=0.0, random_state=seed)
    new = data.sample(1200, random_state=seed + 1000)
    left = rng.random(1200) < np.where(new.y == 1, kept, 1.0)
    items = CalibrationSet.check(data.X, data.y, y_proba=flat(500, rng), caller="test")
    return items, new.X[left], flat(int(left.sum()), rng), new.y[left].mean()


def test_a_shift_behind_a_useless_model_is_seen_in_the_features():
    seen = 0
    for seed in range(3):
        items, X_new, P_new, truth = behind_a_useless_model(seed, 0.4)
        shift = measure_prior_shift(items, P_new, X_new=X_new)
        assert shift.seen_in == "features"
        assert abs(shift.new[1] - truth) < 0.12
        seen += shift.shifted.any()
    assert seen >= 2
    without = measure_prior_shift(items, P_new)  # nothing could show it
    assert not without.shifted.any()
    assert without.half_width > 0.2


def test_features_show_no_shift_where_there_is_none():
    alarms = 0
    for seed in range(4):
        items, X_new, P_new, _ = behind_a_useless_model(seed, 1.0)
        alarms += measure_prior_shift(items, P_new, X_new=X_new).shifted.any()
    assert alarms <= 1


def test_intervals_of_several_classes_hold_together():
    """What labels would show has the quantile of as many questions as classes can ask."""
    for K, n_questions in ((2, 1), (4, 3)):
        P = np.random.default_rng(0).dirichlet(np.ones(K), 120)
        items = CalibrationSet.check(None, np.arange(120) % K, y_proba=P, caller="test")
        shift = measure_prior_shift(items, P[:70])
        error = np.sqrt((1 - 1 / K) / K * (1 / 120 + 1 / 70))
        quantile = norm.ppf(1 - 0.025 / n_questions)
        assert shift.labels_half_width == pytest.approx(quantile * error)


def test_an_estimate_at_an_end_says_as_little_about_the_other_side(monkeypatch):
    """The mean of the probabilities has not moved: nothing was seen, although none is left."""
    errors, old = np.random.default_rng(0).normal(scale=0.1, size=100), np.array([0.8, 0.2])
    moves = np.column_stack([-errors, errors])
    drawn = [_Balance(old, old + move, 0.01 * move) for move in moves]
    balances = iter([_Balance(old, np.array([1.0, 0.0]), np.zeros(2)), *drawn])
    monkeypatch.setattr("hetcal.diagnosis.prior_shift._balance", lambda *_: next(balances))
    P = np.full((20, 2), 0.5)
    items = CalibrationSet.check(None, np.arange(20) % 2, y_proba=P, caller="test")
    shift = measure_prior_shift(items, P)
    width = norm.ppf(0.975) * errors.std(ddof=1)
    np.testing.assert_allclose(shift.high, [0.2, width])
    np.testing.assert_allclose(shift.low, [-width, -0.2])


def test_a_class_that_no_item_has_takes_its_share_from_the_others():
    P = np.hstack([np.random.default_rng(0).dirichlet([1, 1], 60), np.full((60, 1), 0.01)])
    items = CalibrationSet.check(
        None, np.arange(60) % 2, y_proba=P / 1.01, classes=[0, 1, 2], caller="test"
    )
    shift = measure_prior_shift(items, items.output)
    assert shift.new.sum() == pytest.approx(1)
    assert shift.new[2] == pytest.approx(0.01 / 1.01)


def test_a_balance_that_cannot_be_seen_is_called_open():
    items, X_new, P_new, _ = behind_a_useless_model(0, 1.0)
    warning = check_class_balance(measure_prior_shift(items, P_new), items)
    assert warning.code == "class-balance-open"
    assert "X_new" in warning.text
    assert check_class_balance(measure_prior_shift(items, P_new, X_new=X_new), items) is None


@given(
    st.integers(0, 10**6), st.sampled_from([2, 5, 60]), st.sampled_from([0.0, 1e-6, 0.3, 5, 300])
)
def test_no_class_could_make_the_probabilities_likelier(seed, K, sharpness):
    """The slope towards each class is at most zero: so the maximum was found, however odd P is."""
    rng = np.random.default_rng(seed)
    Z = sharpness * rng.normal(size=(rng.integers(1, 80), K))
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    old = np.maximum(rng.dirichlet(np.full(K, 0.2)), 1e-6)
    old /= old.sum()
    prior = estimate_prior(P, old)
    ratio = P / old
    assert (ratio / (ratio @ prior)[:, None]).mean(axis=0).max() < 1 + 1e-5
