r"""Monotone maps that all classes share: quadratic splines of the log-probabilities.

:math:`q_k \propto \exp(f(x_k) + b_k)` with one increasing :math:`f` whose slope is a broken line:
it has the value :math:`c_m \ge 0` at knot m and stays constant beyond the outer knots. A penalty
on the differences of neighbouring :math:`c_m` pulls the map towards a temperature, one on the
biases towards none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hetcal._typing import Matrix, Vector
from hetcal.kernels.convex import Expansion, minimize_convex


class SharedMap(NamedTuple):
    """Slopes of the common function at its knots, one bias per class, and whether it converged."""

    slopes: Vector
    bias: Vector
    converged: bool


def weighted_knots(values: Vector, weight: Vector, levels: Vector) -> Vector:
    """Return distinct quantiles; a weight of two is the value twice, and mirroring mirrors them.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_knots(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), np.array([0, 0.5, 1]))
    array([1., 2., 3.])
    """
    order = np.argsort(values, kind="stable")
    values, total = values[order], np.cumsum(weight[order])
    last = values.shape[0] - 1
    # A share that falls on a step between two values takes their mean, rounding errors included.
    below = np.searchsorted(total, levels * total[-1] - 1e-9 * total[-1]).clip(0, last)
    above = np.searchsorted(total, levels * total[-1] + 1e-9 * total[-1]).clip(0, last)
    return np.unique((values[below] + values[above]) / 2)


def ramps(x: Matrix, knots: Vector) -> Matrix:
    """Return the integrals of hat functions at the knots; they sum to ``x`` minus a constant.

    The first and the last hat stay at one beyond their knot.

    Parameters
    ----------
    x : ndarray of any shape
    knots : ndarray of shape (M,)
        Increasing.

    Returns
    -------
    ndarray of shape (M, *x.shape)

    Examples
    --------
    >>> import numpy as np
    >>> ramps(np.array([-1.0, 0.0, 1.0, 2.0]), np.array([0.0, 1.0]))
    array([[-1. ,  0. ,  0.5,  0.5],
           [ 0. ,  0. ,  0.5,  1.5]])
    """
    parts = np.zeros((knots.shape[0], *x.shape))
    if knots.shape[0] == 1:
        parts[0] = x - knots[0]
        return parts
    parts[0] = np.minimum(x - knots[0], 0.0)
    parts[-1] = np.maximum(x - knots[-1], 0.0)
    for m, width in enumerate(np.diff(knots)):
        within = np.clip((x - knots[m]) / width, 0.0, 1.0)
        rising = width * within**2 / 2
        parts[m + 1] += rising
        parts[m] += width * within - rising
    return parts


def fit_shared_map(
    features: Matrix,
    targets: Matrix,
    weight: Vector,
    *,
    roughness: float,
    bias_penalty: float,
) -> SharedMap:
    r"""Fit :math:`q_k \propto \exp(\sum_m c_m \phi_m(x_k) + b_k)` with :math:`c_m \ge 0`.

    Minimises the total negative log-likelihood plus
    :math:`\lambda_r \sum_m (c_{m+1} - c_m)^2 + \lambda_b \|b\|^2`.

    Parameters
    ----------
    features : ndarray of shape (M, K, n)
        The functions at every class of every item.
    targets : ndarray of shape (K, n)
        Soft labels.
    weight : ndarray of shape (n,)
        Weights of the items.
    roughness, bias_penalty : float
        :math:`\lambda_r` and :math:`\lambda_b`, in units of items.
    """
    M, K, n = features.shape
    total = float(weight.sum())
    share = weight / total
    steps = np.diff(np.eye(M), axis=0)
    ridge = np.zeros((M + K, M + K))
    ridge[:M, :M] = 2 * roughness / total * steps.T @ steps
    ridge[M:, M:] = 2 * bias_penalty / total * np.eye(K)
    flat = features.reshape(M, K * n)
    root_share = np.sqrt(share)

    def expand(theta: Vector) -> Expansion:
        Z = (theta[:M] @ flat).reshape(K, n) + theta[M:, None]
        Z -= Z.max(axis=0)
        Q = np.exp(Z)
        norm = Q.sum(axis=0)
        loss = float(share @ (np.log(norm) - np.einsum("kn,kn->n", targets, Z)))
        Q /= norm
        residual = (Q - targets) * share
        gradient = np.concatenate([flat @ residual.ravel(), residual.sum(axis=1)])
        QW = Q * share
        mean = np.einsum("mkn,kn->mn", features, Q)
        rooted = flat * np.sqrt(QW).ravel()
        centred = mean * root_share
        hessian = np.empty_like(ridge)
        hessian[:M, :M] = rooted @ rooted.T - centred @ centred.T
        cross = np.einsum("mkn,kn->mk", features, QW) - mean @ QW.T
        hessian[:M, M:], hessian[M:, :M] = cross, cross.T
        hessian[M:, M:] = np.diag(QW.sum(axis=1)) - QW @ Q.T
        loss += 0.5 * float(theta @ ridge @ theta)
        return Expansion(loss, gradient + ridge @ theta, hessian + ridge)

    start = np.concatenate([np.ones(M), np.zeros(K)])
    lower = np.concatenate([np.zeros(M), np.full(K, -np.inf)])
    found = minimize_convex(expand, start, lower=lower)
    return SharedMap(found.point[:M], found.point[M:], found.converged)
