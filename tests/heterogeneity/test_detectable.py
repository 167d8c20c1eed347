"""What would have been found: against the whole test, on labels that hold a planted difference."""

import numpy as np
import pytest

from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity, make_problem
from hetcal.heterogeneity import detectable, heterogeneity_test_set
from hetcal.heterogeneity.detectable import (
    SHARE_OF_DICTIONARY,
    _null_scores,
    _planted,
    detectable_size,
)
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.heterogeneity.functions_of_p import fit_global
from hetcal.heterogeneity.score_test import Outcomes


def items_of(problem, y=None):
    return CalibrationSet.check(
        problem.X,
        problem.y if y is None else y,
        y_proba=problem.y_proba,
        groups=problem.groups,
        classes=np.arange(problem.y_proba.shape[1]),
        caller="test",
    )


def power(problem, size, n_draws, seed=5):
    """Return how often the whole test finds planted differences of this size at 5 %."""
    items = items_of(problem)
    fit, columns = fit_global(items), FeatureColumns.read(items.X)
    rng, found = np.random.default_rng(seed), []
    while len(found) < n_draws:
        difference = _planted(columns, fit, rng)
        if difference is None:
            continue
        law = np.clip(fit.proba + np.sqrt(size) * difference, 1e-6, None)
        law /= law.sum(axis=1, keepdims=True)
        y = (rng.random((len(law), 1)) > law.cumsum(axis=1)).sum(axis=1).clip(max=law.shape[1] - 1)
        test = heterogeneity_test_set(items_of(problem, y), learners=[])
        found.append(test.parts["dictionary"] <= 0.8 * 0.05)
    return np.mean(found)


def test_what_is_called_detectable_is_detected():
    problem = make_problem("calibrated", 150, random_state=0)
    size = detectable_size(items_of(problem))
    assert power(problem, size, 15) >= 0.5  # 0.8 less three errors
    assert power(problem, size / 6, 15) <= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["calibrated", "label-noise-of-four", "two-per-cent-events"])
@pytest.mark.parametrize("n", [300, 1000])
def test_the_power_is_what_was_asked_for(name, n):
    problem = make_problem(name, n, random_state=1)
    assert 0.7 <= power(problem, detectable_size(items_of(problem)), 150, seed=6) <= 0.95


def test_more_power_and_a_lower_level_need_more():
    items = items_of(make_problem("calibrated", 200, random_state=0))
    usual = detectable_size(items)
    assert detectable_size(items, power=0.5) < usual < detectable_size(items, level=0.001)


@pytest.mark.parametrize(("times_level", "is_found"), [(0.99, True), (1.01, False)])
def test_the_dictionary_has_its_share_of_the_level(monkeypatch, times_level, is_found):
    p = np.full(80, times_level * SHARE_OF_DICTIONARY * 0.02)
    monkeypatch.setattr(detectable, "combined_p_values", lambda *_: (p, {}))
    size = detectable_size(items_of(make_problem("calibrated", 100, random_state=0)), level=0.02)
    assert np.isfinite(size) == is_found


def test_planted_differences_are_of_size_one_and_no_functions_of_p():
    problem = make_problem("label-noise-of-four", 200, random_state=0)
    fit, columns = fit_global(items_of(problem)), FeatureColumns.read(problem.X)
    rng = np.random.default_rng(0)
    drawn = [_planted(columns, fit, rng) for _ in range(10)]
    assert any(one is not None for one in drawn)
    for one in (one for one in drawn if one is not None):
        np.testing.assert_allclose(fit.space.weight @ (one**2).sum(axis=1), 200)
        np.testing.assert_allclose(fit.space.residual(one), one, atol=1e-9)


def test_scores_of_groups_spread_as_residuals_would_without_the_fit():
    data = make_hidden_heterogeneity(200, heterogeneity=0.0, random_state=0)
    groups, rng = np.arange(200) // 10, np.random.default_rng(0)
    items = CalibrationSet.check(data.X, data.y, y_proba=data.y_proba, groups=groups, caller="test")
    fit = fit_global(items)
    outcomes = Outcomes.of(fit, items.proba)
    weighted = rng.normal(size=(200, 40)).astype(np.float32)
    drawn = _null_scores(weighted, fit, outcomes, groups, rng)
    left = outcomes.residuals[:, 0] / np.sqrt(1 - fit.leverage)
    sums = [weighted[groups == g].T @ left[groups == g] for g in range(20)]
    expected = np.square(sums).sum(axis=0)
    assert np.mean(fit.leverage) > 0.15
    assert np.mean((drawn[:, 0] ** 2).mean(axis=1) / expected) == pytest.approx(1, rel=0.05)


def test_dependent_labels_hide_more():
    """Five rows with the same label and features count as little more than one."""
    data = make_hidden_heterogeneity(100, heterogeneity=0.0, random_state=0)
    rows = np.repeat(np.arange(100), 5)
    X, y, P = data.X[rows], data.y[rows], data.y_proba[rows]

    def size(groups):
        return detectable_size(
            CalibrationSet.check(X, y, y_proba=P, groups=groups, caller="test"), power=0.5
        )

    assert size(rows) > 2.5 * size(None)


def test_nothing_can_be_found_in_a_column_that_says_what_p_says():
    p = np.linspace(0.1, 0.9, 200)
    y = (np.random.default_rng(0).random(200) < p).astype(int)
    for X in (p[:, None], np.ones((200, 1))):
        items = CalibrationSet.check(X, y, y_proba=p, caller="test")
        assert detectable_size(items) == np.inf
