"""Matrix scaling: its optimum against a general-purpose optimiser, and its special cases."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from tests.kernels.test_scaling import sample

from hetcal.kernels.matrix_scaling import apply_matrix_map, fit_matrix_map
from hetcal.kernels.scaling import fit_softmax_map, fit_temperature, smoothed_targets


def fitted(L, codes, weight, diagonal=2.0, off_diagonal=6.0, bias=1.0):
    targets = smoothed_targets(codes, L.shape[1], weight)
    return fit_matrix_map(
        L,
        targets,
        weight,
        diagonal_penalty=diagonal,
        off_diagonal_penalty=off_diagonal,
        bias_penalty=bias,
    )


def test_the_matrix_is_the_minimum_of_the_penalised_loss():
    L, codes, weight = sample(n=120, K=3)
    found = fitted(L, codes, weight)
    targets = smoothed_targets(codes, 3, weight)

    def objective(theta):
        W, b = theta[:9].reshape(3, 3), theta[9:]
        d = np.diag(W)
        off = W - np.diag(d)
        penalty = 2.0 * np.sum((d - d.mean()) ** 2) + 6.0 * np.sum(off**2) + b @ b
        return penalty - np.sum(weight * targets * log_softmax(L @ W.T + b, axis=1).T)

    best = minimize(objective, np.append(np.eye(3).ravel(), np.zeros(3)), tol=1e-10)
    ours = np.append(found.matrix.ravel(), found.bias)
    assert found.converged
    assert objective(ours) <= best.fun + 1e-6
    np.testing.assert_allclose(ours, best.x, atol=1e-3)


def test_an_immovable_off_diagonal_gives_vector_scaling():
    L, codes, weight = sample(n=200)
    targets = smoothed_targets(codes, 4, weight)
    tempered = log_softmax(L * fit_temperature(L, targets, weight).scale[0], axis=1)
    centred = tempered - tempered.mean(axis=1, keepdims=True)
    spread = np.sqrt(weight @ np.mean(centred**2, axis=1) / weight.sum())
    found = fitted(tempered, codes, weight, diagonal=5.0 * spread**2, off_diagonal=1e9, bias=2.0)
    vector = fit_softmax_map(
        tempered, targets, weight, per_class_scale=True, bias_penalty=2.0, scale_penalty=5.0
    )
    np.testing.assert_allclose(np.diag(found.matrix), vector.scale, atol=1e-4)
    np.testing.assert_allclose(found.bias, vector.bias, atol=1e-4)


def test_confused_classes_are_told_apart_by_the_others():
    """What class 0 says of itself is noise; the truth stands in the column of class 1."""
    rng = np.random.default_rng(0)
    L = log_softmax(rng.normal(size=(4000, 3)), axis=1)
    W = np.array([[0.0, 1.5, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.5]])
    truth = np.exp(log_softmax(L @ W.T, axis=1))
    codes = (truth.cumsum(axis=1) < rng.random(4000)[:, None]).sum(axis=1)
    found = fitted(L, codes, np.ones(4000))
    said = apply_matrix_map(L, found.matrix, found.bias)
    assert np.abs(said - truth).mean() < 0.02


@pytest.mark.parametrize("K", [3, 30])
def test_the_search_ends_within_reach_of_the_minimum(K):
    """Log-probabilities that move together are no reason to stop early."""
    L, codes, weight = sample(n=500, K=K, sharpness=8.0)
    found = fitted(L, codes, weight)
    W, b = found.matrix, found.bias
    residual = (apply_matrix_map(L, W, b).T - smoothed_targets(codes, K, weight)) * weight
    gradient = residual @ L + 12.0 * (W - np.diag(np.diag(W)))
    gradient += 4.0 * np.diag(np.diag(W) - np.diag(W).mean())
    assert found.converged
    assert np.abs(gradient).max() < 1e-3 * weight.sum()
    assert np.abs(residual.sum(axis=1) + 2.0 * b).max() < 1e-4 * weight.sum()
