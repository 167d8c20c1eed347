"""What would have been found: against the whole test, on labels that hold a planted difference."""

import numpy as np
import pytest

from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity, make_problem
from hetcal.heterogeneity import heterogeneity_test_set
from hetcal.heterogeneity.detectable import _planted, detectable_size
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.heterogeneity.functions_of_p import fit_global


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
