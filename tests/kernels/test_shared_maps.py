"""Splines that all classes share: basis, knots, and the optimum of the fit."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from tests.kernels.test_scaling import sample

from hetcal.kernels.scaling import fit_temperature, smoothed_targets
from hetcal.kernels.shared_maps import fit_shared_map, ramps, weighted_knots

KNOTS = np.array([-2.0, -0.5, 0.0, 3.0])


def test_the_slope_of_a_ramp_is_a_hat():
    x = np.linspace(-4, 5, 901)
    slopes = np.gradient(ramps(x, KNOTS), x, axis=1)
    hats = np.stack([np.interp(x, KNOTS, row) for row in np.eye(4)])
    np.testing.assert_allclose(slopes[:, 1:-1], hats[:, 1:-1], atol=0.02)
    np.testing.assert_allclose(ramps(x, KNOTS).sum(axis=0), x - KNOTS[0], atol=1e-12)


def test_one_knot_is_a_straight_line():
    np.testing.assert_array_equal(ramps(np.array([1.0, 3.0]), np.array([2.0])), [[-1.0, 1.0]])


def test_knots_know_weights_and_mirror():
    rng = np.random.default_rng(0)
    x, times = rng.integers(0, 40, 50).astype(float), rng.integers(1, 4, 50)
    levels = np.linspace(0.02, 0.98, 6)
    knots = weighted_knots(x, times.astype(float), levels)
    repeated = np.repeat(x, times)
    np.testing.assert_allclose(knots, weighted_knots(repeated, np.ones(len(repeated)), levels))
    mirrored = weighted_knots(-x, times.astype(float), levels)
    np.testing.assert_allclose(knots, -mirrored[::-1])
    expected = np.unique(np.quantile(repeated, levels, method="averaged_inverted_cdf"))
    np.testing.assert_allclose(knots, expected)


@pytest.mark.parametrize("roughness", [0.3, 1e7])
def test_the_map_is_the_minimum_of_the_penalised_loss(roughness):
    L, codes, weight = sample(n=150, K=3)
    features = ramps(L.T, np.array([-6.0, -2.0, -0.3]))
    targets = smoothed_targets(codes, 3, weight)
    found = fit_shared_map(features, targets, weight, roughness=roughness, bias_penalty=0.7)

    def objective(theta):
        Z = np.tensordot(theta[:3], features, axes=1) + theta[3:, None]
        penalty = roughness * np.sum(np.diff(theta[:3]) ** 2) + 0.7 * theta[3:] @ theta[3:]
        return penalty - np.sum(weight * targets * log_softmax(Z, axis=0))

    bounds = [(0, None)] * 3 + [(None, None)] * 3
    best = minimize(objective, np.r_[1.0, 1, 1, 0, 0, 0], bounds=bounds, tol=1e-12)
    assert found.converged
    assert objective(np.append(found.slopes, found.bias)) <= best.fun + 1e-6


def test_a_map_without_bends_and_biases_is_a_temperature():
    L, codes, weight = sample(n=300)
    targets = smoothed_targets(codes, 4, weight)
    features = ramps(L.T, np.array([-6.0, -2.0, -0.3]))
    found = fit_shared_map(features, targets, weight, roughness=1e9, bias_penalty=1e9)
    scale = fit_temperature(L, targets, weight).scale[0]
    np.testing.assert_allclose(found.slopes, scale, atol=1e-4)
    np.testing.assert_allclose(found.bias, 0.0, atol=1e-6)
