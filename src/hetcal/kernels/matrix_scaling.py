r"""Matrix scaling with structured shrinkage: :math:`q \propto \exp(W \log p + b)`.

:math:`W` is a common scale on the diagonal, a deviation from it per class, and what the other
classes add. The three parts and the intercepts are shrunk separately: of :math:`K^2` off-diagonal
entries each must be shrunk about K times as strongly as one of the K others, so that together
they cost as much. (Berta, Holzmueller, Jordan, Bach: Structured matrix scaling for multi-class
calibration. AISTATS 2026.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from hetcal._typing import Matrix, Vector

# Gradient of the mean log loss at which the search ends.
_TOLERANCE = 1e-6
_MOST_STEPS = 2000


class MatrixMap(NamedTuple):
    """Parameters of ``q ~ exp(log p @ matrix.T + bias)``, and whether the fit converged."""

    matrix: Matrix
    bias: Vector
    converged: bool


def fit_matrix_map(
    log_proba: Matrix,
    targets: Matrix,
    weight: Vector,
    *,
    diagonal_penalty: float,
    off_diagonal_penalty: float,
    bias_penalty: float,
) -> MatrixMap:
    r"""Fit a full matrix and biases by penalised maximum likelihood.

    Minimises the total negative log-likelihood plus
    :math:`\lambda_d \sum_k (W_{kk} - \bar W)^2 + \lambda_o \sum_{j \ne k} W_{kj}^2 + \lambda_b
    \|b\|^2`, where :math:`\bar W` is the mean of the diagonal. Convex; L-BFGS.

    Parameters
    ----------
    log_proba : ndarray of shape (n, K)
        Log-probabilities, sharpened or flattened before so that the penalties have a meaning.
    targets : ndarray of shape (K, n)
        Soft labels.
    weight : ndarray of shape (n,)
        Weights of the items.
    diagonal_penalty, off_diagonal_penalty, bias_penalty : float
        In units of items.
    """
    n, K = log_proba.shape
    total = float(weight.sum())
    share = weight / total
    X = np.column_stack([log_proba, np.ones(n)])
    T = np.ascontiguousarray(targets.T)
    penalty = np.full((K, K + 1), 2 * off_diagonal_penalty / total)
    np.fill_diagonal(penalty, 2 * diagonal_penalty / total)
    penalty[:, K] = 2 * bias_penalty / total
    whiten = _whitening(X, np.exp(log_proba), share, penalty)
    each = np.arange(K)

    def parameters(theta: Vector) -> Matrix:
        return np.einsum("ki,kij->kj", theta.reshape(K, K + 1), whiten)

    def value_and_gradient(theta: Vector) -> tuple[float, Vector]:
        W = parameters(theta)
        Z = X @ W.T
        Z -= Z.max(axis=1, keepdims=True)
        Q = np.exp(Z)
        norm = Q.sum(axis=1, keepdims=True)
        loss = float(share @ (np.log(norm[:, 0]) - np.einsum("nk,nk->n", T, Z)))
        Q /= norm
        Q -= T
        Q *= share[:, None]
        away = W.copy()
        away[each, each] -= W[each, each].mean()
        pull = penalty * away
        gradient = np.einsum("kj,kij->ki", Q.T @ X + pull, whiten)
        return loss + 0.5 * float((pull * away).sum()), gradient.ravel()

    identity = np.linalg.solve(whiten.transpose(0, 2, 1), np.eye(K, K + 1)[:, :, None])
    found = scipy.optimize.minimize(
        value_and_gradient,
        identity.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _MOST_STEPS, "gtol": _TOLERANCE, "ftol": 0.0, "maxcor": 20},
    )
    steep = float(np.abs(found.jac).max())
    W = parameters(found.x)
    return MatrixMap(W[:, :K], W[:, K], steep < 100 * _TOLERANCE)


def _whitening(X: Matrix, P: Matrix, share: Vector, penalty: Matrix) -> Matrix:
    """Return coordinates in which the loss is about equally curved in all directions, per class.

    Log-probabilities of all classes go up and down together; without this the search takes ten
    times as many steps.
    """
    uncertain = share[:, None] * np.maximum(P * (1 - P), 1e-6)
    curvature = np.stack([(X * column[:, None]).T @ X for column in uncertain.T])
    curvature += penalty[:, :, None] * np.eye(X.shape[1])
    curvature += 1e-9 * np.trace(curvature, axis1=1, axis2=2)[:, None, None] * np.eye(X.shape[1])
    return np.linalg.inv(np.linalg.cholesky(curvature))


def apply_matrix_map(log_proba: Matrix, matrix: Matrix, bias: Vector) -> Matrix:
    """Return ``softmax(log_proba @ matrix.T + bias)`` row by row."""
    Z = log_proba @ matrix.T + bias
    Z -= Z.max(axis=1, keepdims=True)
    np.exp(Z, out=Z)
    Z /= Z.sum(axis=1, keepdims=True)
    return Z
