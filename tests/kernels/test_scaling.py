"""Parametric maps: optima against a general-purpose optimiser, and their exact special cases."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from hetcal.kernels.binary_maps import (
    class_log_odds,
    fit_logistic,
    log_rest,
    normalized_sigmoids,
    platt_targets,
    ranking_scores,
    smoothed_one_vs_rest,
)
from hetcal.kernels.convex import Expansion, minimize_convex
from hetcal.kernels.scaling import (
    apply_softmax_map,
    fit_softmax_map,
    fit_temperature,
    hard_targets,
    smoothed_targets,
)


def sample(n=400, K=4, *, seed=0, temperature=2.0, sharpness=3.0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, K)) * sharpness
    truth = softmax(logits / temperature, axis=1)
    codes = (truth.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, K - 1)
    return log_softmax(logits, axis=1), codes, rng.uniform(0.2, 2.0, n)


def total_loss(log_proba, codes, weight, scale, bias):
    """Negative log-likelihood with one pseudo-error."""
    n = weight.sum()
    K = log_proba.shape[1]
    log_q = log_softmax(scale * log_proba + bias, axis=1)
    targets = np.full(log_q.shape, 1 / (n + 2) / (K - 1))
    targets[np.arange(len(codes)), codes] = (n + 1) / (n + 2)
    return -np.sum(weight[:, None] * targets * log_q)


def test_smoothed_targets_sum_to_one_and_carry_one_pseudo_error():
    targets = smoothed_targets(np.array([0, 2, 2]), 3, np.array([1.0, 2.0, 1.0]))
    np.testing.assert_allclose(targets.sum(axis=0), 1.0)
    np.testing.assert_allclose(targets[[0, 2, 2], [0, 1, 2]], 5 / 6)
    hard = hard_targets(np.array([0, 2]), 3)
    np.testing.assert_array_equal(hard, [[1, 0], [0, 0], [0, 1]])


def test_temperature_is_the_minimum_of_the_loss():
    L, codes, weight = sample(n=150)
    fitted = fit_temperature(L, smoothed_targets(codes, 4, weight), weight)
    best = minimize(
        lambda a: total_loss(L, codes, weight, a[0], 0.0), [1.0], tol=1e-10, method="Nelder-Mead"
    )
    assert fitted.converged
    assert fitted.scale[0] == pytest.approx(best.x[0], rel=1e-4)


@pytest.mark.parametrize("per_class_scale", [False, True])
def test_softmax_map_is_the_minimum_of_the_penalised_loss(per_class_scale):
    L, codes, weight = sample(n=120, K=3)
    fitted = fit_softmax_map(
        L,
        smoothed_targets(codes, 3, weight),
        weight,
        per_class_scale=per_class_scale,
        bias_penalty=2.0,
        scale_penalty=5.0,
    )
    centred = L - L.mean(axis=1, keepdims=True)
    spread = np.sqrt(weight @ np.mean(centred**2, axis=1) / weight.sum())

    def objective(theta):
        scale = theta[:3] if per_class_scale else np.full(3, theta[0])
        bias = theta[-3:]
        penalty = 2.0 * bias @ bias + 5.0 * spread**2 * np.sum((scale - scale.mean()) ** 2)
        return total_loss(L, codes, weight, scale, bias) + penalty

    n_scales = 3 if per_class_scale else 1
    best = minimize(objective, np.append(np.ones(n_scales), np.zeros(3)), tol=1e-9)
    ours = np.append(fitted.scale[:n_scales], fitted.bias)
    assert fitted.converged
    assert objective(ours) <= best.fun + 1e-9
    np.testing.assert_allclose(ours, best.x, atol=1e-3)


def test_large_penalties_lead_back_to_temperature_scaling():
    L, codes, weight = sample()
    targets = smoothed_targets(codes, 4, weight)
    temperature = fit_temperature(L, targets, weight)
    vector = fit_softmax_map(
        L, targets, weight, per_class_scale=True, bias_penalty=1e9, scale_penalty=1e9
    )
    np.testing.assert_allclose(vector.scale, temperature.scale, atol=1e-5)
    np.testing.assert_allclose(vector.bias, 0.0, atol=1e-5)


def test_temperature_undoes_a_known_temperature():
    L, codes, _ = sample(n=40_000, temperature=2.5)
    fitted = fit_temperature(L, smoothed_targets(codes, 4, np.ones(40_000)), np.ones(40_000))
    assert 1 / fitted.scale[0] == pytest.approx(2.5, rel=0.03)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e3])
def test_the_fit_does_not_depend_on_the_units_of_the_logits(factor):
    L, codes, weight = sample()
    targets = smoothed_targets(codes, 4, weight)
    plain = fit_softmax_map(
        L, targets, weight, per_class_scale=True, bias_penalty=2, scale_penalty=5
    )
    scaled = fit_softmax_map(
        factor * L, targets, weight, per_class_scale=True, bias_penalty=2, scale_penalty=5
    )
    np.testing.assert_allclose(scaled.scale * factor, plain.scale, rtol=1e-6)
    assert scaled.converged


def test_without_errors_the_temperature_is_finite():
    L = np.log([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
    codes, weight = np.array([0, 1, 0]), np.ones(3)
    fitted = fit_temperature(L, smoothed_targets(codes, 2, weight), weight)
    assert fitted.converged
    assert 0 < fitted.scale[0] < 10
    mean_truth = apply_softmax_map(L, fitted.scale, fitted.bias)[np.arange(3), codes].mean()
    assert 0.7 < mean_truth < 0.9


def test_logistic_is_the_minimum_and_respects_its_bound():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 2))
    target = np.where(rng.random(200) < 1 / (1 + np.exp(-x[:, 0] + 2 * x[:, 1])), 0.99, 0.01)
    weight = rng.uniform(0.5, 2, 200)

    def loss(theta):
        z = x @ theta[:2] + theta[2]
        return weight @ (np.logaddexp(0, z) - target * z)

    free = fit_logistic(x, target, weight, non_negative=False)
    best = minimize(loss, np.zeros(3), tol=1e-10)
    np.testing.assert_allclose([*free.slopes, free.intercept], best.x, atol=1e-4)
    held = fit_logistic(x, target, weight)
    best = minimize(loss, np.zeros(3), bounds=[(0, None), (0, None), (None, None)], tol=1e-12)
    assert held.slopes[1] == 0.0
    np.testing.assert_allclose([*held.slopes, held.intercept], best.x, atol=1e-3)


def test_a_heavy_prior_wins_and_a_light_one_hardly_matters():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 1))
    target = np.where(rng.random(300) < 1 / (1 + np.exp(-x[:, 0])), 0.99, 0.01)
    other = fit_logistic(x, np.full(300, 0.3), np.ones(300))
    alone = fit_logistic(x, target, np.ones(300))
    heavy = fit_logistic(x, target, np.ones(300), prior=other, prior_mass=1e8)
    light = fit_logistic(x, target, np.ones(300), prior=other, prior_mass=1e-6)
    np.testing.assert_allclose(heavy.slopes, other.slopes, atol=1e-4)
    np.testing.assert_allclose(light.slopes, alone.slopes, atol=1e-4)


def test_constant_score_gives_the_rate():
    fitted = fit_logistic(np.full((4, 1), 0.3), np.array([0.9, 0.1, 0.1, 0.1]), np.ones(4))
    rate = 1 / (1 + np.exp(-(0.3 * fitted.slopes[0] + fitted.intercept)))
    assert rate == pytest.approx(0.3)


def test_platt_targets_by_hand():
    weight = np.array([1.0, 3.0, 2.0])
    np.testing.assert_allclose(
        platt_targets(np.array([True, True, False]), weight), [5 / 6, 5 / 6, 1 / 4]
    )
    np.testing.assert_allclose(
        smoothed_one_vs_rest(np.array([1, 0]), 3, np.ones(2)),
        [[0.25, 0.75, 0.25], [0.75, 0.25, 0.25]],
    )


@pytest.mark.parametrize("K", [2, 3, 7])
def test_log_rest_against_a_loop_and_beyond_double_precision(K):
    L = np.random.default_rng(K).normal(size=(20, K)) * 5
    expected = [[np.log(np.exp(np.delete(row, k)).sum()) for k in range(K)] for row in L]
    np.testing.assert_allclose(log_rest(L), expected, rtol=1e-12)
    np.testing.assert_allclose(class_log_odds(L), L - expected, rtol=1e-10, atol=1e-12)
    saturated = np.full((1, K), -500.0)
    saturated[0, 0] = 0.0
    assert class_log_odds(saturated)[0, 0] == pytest.approx(500 - np.log(K - 1))


def test_sigmoids_that_all_underflow_still_normalise():
    Q = normalized_sigmoids(np.array([[-800.0, -801.0, -5000.0]]))
    np.testing.assert_allclose(Q, softmax([[-800.0, -801.0, -5000.0]], axis=1))


def test_minimiser_reports_an_objective_without_a_minimum():
    def falling(x):
        return Expansion(float(-x[0]), np.array([-1.0]), np.array([[0.0]]))

    assert not minimize_convex(falling, np.zeros(1), max_iter=5).converged
    bounded = minimize_convex(falling, np.zeros(1), upper=np.array([4.0]))
    assert bounded.converged
    assert bounded.point[0] == 4.0


def test_ranking_scores_tie_exactly_where_probabilities_do():
    """The other classes' sum rounds differently in every order; a tie in p must stay a tie."""
    rng = np.random.default_rng(0)
    others = rng.dirichlet(np.ones(5), 200) * 0.7
    P = np.column_stack([np.full(200, 0.3), others])
    scores = ranking_scores(P, np.log(P))
    assert np.unique(scores[:, 0]).shape[0] == 1
    np.testing.assert_allclose(scores, class_log_odds(np.log(P)), rtol=1e-9, atol=1e-9)
    for k in range(1, 6):
        np.testing.assert_array_equal(np.argsort(scores[:, k]), np.argsort(P[:, k]))
