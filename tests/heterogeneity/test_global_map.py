"""The flexible global map: derivatives, what it can bend to, and its quick refits."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from hetcal.data import Folds
from hetcal.heterogeneity.global_map import (
    CrossFittedMap,
    SplineBasis,
    _Rows,
    fit_flexible_map,
)
from hetcal.kernels.scaling import smoothed_targets


def law(n, K, seed=0, power=0.5):
    rng = np.random.default_rng(seed)
    L = 2 * rng.normal(size=(n, K))
    L -= np.log(np.exp(L).sum(1, keepdims=True))
    truth = np.exp(power * L)
    truth /= truth.sum(1, keepdims=True)
    codes = (rng.uniform(size=(n, 1)) >= truth.cumsum(1)[:, :-1]).sum(1)
    return L, truth, codes


@pytest.mark.parametrize("K", [2, 3, 5, 31])
def test_gradient_and_hessian_are_those_of_the_objective(K):
    L, _, codes = law(60, K)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2, 60)
    rows = _Rows(SplineBasis.from_log_proba(L), L, weight)
    targets = smoothed_targets(codes, K, weight).T
    theta = 0.1 * rng.normal(size=len(rows.basis.ridge))
    assert (
        check_grad(
            lambda t: rows.value(t, targets), lambda t: rows.expand(t, targets).gradient, theta
        )
        < 1e-5
    )
    direction = rng.normal(size=len(theta))
    step = 1e-5
    ahead = rows.expand(theta + step * direction, targets).gradient
    behind = rows.expand(theta - step * direction, targets).gradient
    hessian = rows.expand(theta, targets).hessian
    np.testing.assert_allclose(hessian @ direction, (ahead - behind) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("K", [2, 5])
def test_it_finds_a_temperature(K):
    L, truth, codes = law(20_000, K)
    fitted = fit_flexible_map(L, codes, np.ones(len(L))).apply(L)
    assert np.mean((fitted - truth) ** 2) < 1e-4


def test_it_bends_where_a_temperature_cannot():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 20_000)
    truth = np.where(p < 0.5, 0.4 * p, 0.2 + 0.6 * (p - 0.5) / 0.5)  # a kink, and not symmetric
    codes = (rng.uniform(size=len(p)) < truth).astype(int)
    L = np.log(np.column_stack([1 - p, p]))
    fitted = fit_flexible_map(L, codes, np.ones(len(p))).apply(L)[:, 1]
    assert np.abs(fitted - truth).mean() < 0.015


def test_few_items_are_shrunk_towards_a_temperature():
    L, truth, codes = law(40, 3)
    fitted = fit_flexible_map(L, codes, np.ones(40)).apply(L)
    assert np.abs(fitted - truth).mean() < 0.12
    assert np.isfinite(fitted).all()


def test_weights_count_like_repeated_rows():
    L, _, codes = law(200, 3)
    weight = np.random.default_rng(0).integers(1, 4, 200)
    basis = SplineBasis.from_log_proba(L)
    weighted = fit_flexible_map(L, codes, weight.astype(float), basis=basis)
    rows = np.repeat(np.arange(200), weight)
    repeated = fit_flexible_map(L[rows], codes[rows], np.ones(len(rows)), basis=basis)
    np.testing.assert_allclose(weighted.apply(L), repeated.apply(L), atol=1e-6)


@pytest.mark.parametrize("K", [2, 4])
def test_quick_refit_is_the_full_fit(K):
    L, _, codes = law(500, K)
    weight = np.ones(500)
    fold = np.arange(500) % 5
    crossfit = CrossFittedMap(L, codes, weight, Folds(fold))
    rng = np.random.default_rng(3)
    drawn = (rng.uniform(size=(500, 1)) >= crossfit.fitted.cumsum(1)[:, :-1]).sum(1)
    quick = crossfit.refit(drawn)
    for number in range(5):
        train, test = fold != number, fold == number
        full = fit_flexible_map(L[train], drawn[train], weight[train], basis=crossfit.full.basis)
        np.testing.assert_allclose(quick[test], full.apply(L[test]), atol=0.01)


def test_cross_fitted_predictions_do_not_see_their_own_labels():
    L, _, codes = law(200, 2)
    fold = np.arange(200) % 5
    before = CrossFittedMap(L, codes, np.ones(200), Folds(fold)).proba
    changed = codes.copy()
    changed[fold == 0] = 1 - changed[fold == 0]
    after = CrossFittedMap(L, changed, np.ones(200), Folds(fold)).proba
    np.testing.assert_allclose(before[fold == 0], after[fold == 0], atol=1e-7)
    assert np.abs(before - after)[fold != 0].max() > 0.01


def test_saturated_probabilities_and_a_missing_class():
    rng = np.random.default_rng(0)
    L = np.log(
        np.column_stack([np.full(100, 1e-200), np.full(100, 1 - 1e-12), np.full(100, 1e-12)])
    )
    L[50:] = L[50:, [1, 0, 2]]
    codes = rng.integers(0, 2, 100)  # the third class never happens
    fitted = fit_flexible_map(L, codes, np.ones(100)).apply(L)
    assert np.isfinite(fitted).all()
    np.testing.assert_allclose(fitted[:, 0].mean(), (codes == 0).mean(), atol=0.05)


def test_the_identity_leaves_probabilities_as_they_are():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 80)
    codes = np.array([rng.choice(3, p=p) for p in P])
    observed = CrossFittedMap(np.log(P), codes, np.ones(80), Folds(np.arange(80) % 4))
    identity = observed.of_the_identity(np.log(P))
    np.testing.assert_allclose(identity.fitted, P)
    np.testing.assert_array_equal(identity.proba, observed.proba)


@pytest.mark.parametrize("K", [2, 5, 31])
def test_all_but_the_shared_slope_is_pulled_to_zero(K):
    L, _, codes = law(60, K)
    fitted = fit_flexible_map(L, codes, np.ones(60))
    ridge = fitted.basis.ridge
    assert ridge.shape == fitted.theta.shape
    assert ridge[0] < 1e-6 < 0.1 < ridge[1:].min()
    # So that items count the more the more there are of them.
    heavy = fit_flexible_map(L, codes, np.full(60, 100.0)).theta
    assert np.linalg.norm(fitted.theta[1:]) < np.linalg.norm(heavy[1:])
