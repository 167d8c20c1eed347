r"""Maps that rescale log-probabilities before a softmax: temperature, bias-corrected, vector.

All three are :math:`q_k \propto \exp(s_k \log p_k + b_k)`; temperature scaling has one common
:math:`s` and no :math:`b`, the bias-corrected form adds :math:`b`, vector scaling frees every
:math:`s_k`. The negative log-likelihood is convex in :math:`(s, b)` and is minimised by Newton's
method.

Targets are smoothed by one pseudo-error in all (:func:`smoothed_targets`), so that a calibration
set without errors gives a large but finite :math:`s`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hetcal._typing import Matrix, Rows, Vector
from hetcal.kernels.convex import Expansion, minimize_convex


class SoftmaxMap(NamedTuple):
    """Parameters of ``q ~ exp(scale * log p + bias)``, and whether the fit converged."""

    scale: Vector
    bias: Vector
    converged: bool


def smoothed_targets(codes: Rows, n_classes: int, weight: Vector) -> Matrix:
    """Return soft labels that carry one pseudo-error in total, as columns: shape (K, n).

    With ``n`` the sum of weights, the observed class gets ``(n + 1) / (n + 2)`` and the others
    share the rest.

    Examples
    --------
    >>> import numpy as np
    >>> smoothed_targets(np.array([0, 1]), 3, np.ones(2))
    array([[0.75 , 0.125],
           [0.125, 0.75 ],
           [0.125, 0.125]])
    """
    n = float(weight.sum())
    targets = np.full((n_classes, codes.shape[0]), 1.0 / (n + 2) / (n_classes - 1))
    targets[codes, np.arange(codes.shape[0])] = (n + 1) / (n + 2)
    return targets


def hard_targets(codes: Rows, n_classes: int) -> Matrix:
    """Return one-hot labels as columns: shape (K, n)."""
    return np.equal.outer(np.arange(n_classes), codes).astype(np.float64)


def apply_softmax_map(log_proba: Matrix, scale: Vector, bias: Vector) -> Matrix:
    """Return ``softmax(scale * log_proba + bias)`` row by row.

    Examples
    --------
    >>> import numpy as np
    >>> log_proba = np.log([[0.9, 0.1]])
    >>> apply_softmax_map(log_proba, np.full(2, 0.5), np.zeros(2))
    array([[0.75, 0.25]])
    """
    Z = log_proba * scale + bias
    Z -= Z.max(axis=1, keepdims=True)
    np.exp(Z, out=Z)
    Z /= Z.sum(axis=1, keepdims=True)
    return Z


def fit_temperature(
    log_proba: Matrix,
    targets: Matrix,
    weight: Vector,
    *,
    lower: float = 0.0,
    upper: float = np.inf,
) -> SoftmaxMap:
    """Fit one common scale (the inverse temperature), between ``lower`` and ``upper``.

    Parameters
    ----------
    log_proba : ndarray of shape (n, K)
        Log-probabilities; an offset per row does not matter.
    targets : ndarray of shape (K, n)
        Soft labels, columns summing to one.
    weight : ndarray of shape (n,)
        Weights of the items.
    """
    L, spread = _centred_columns(log_proba, weight)
    K = L.shape[0]
    share = weight / weight.sum()

    def expand(theta: Vector) -> Expansion:
        Q, loss = _softmax_columns(theta[0] * L, targets, share)
        mean = np.einsum("kn,kn->n", Q, L)
        slope = share @ (mean - np.einsum("kn,kn->n", targets, L))
        curvature = share @ (np.einsum("kn,kn,kn->n", Q, L, L) - mean**2)
        return Expansion(loss, np.array([slope]), np.array([[curvature]]))

    found = minimize_convex(
        expand,
        np.array([min(spread, 1.0)]),
        lower=np.array([lower * spread]),
        upper=np.array([upper * spread]),
    )
    return SoftmaxMap(np.full(K, found.point[0] / spread), np.zeros(K), found.converged)


def fit_softmax_map(
    log_proba: Matrix,
    targets: Matrix,
    weight: Vector,
    *,
    per_class_scale: bool,
    bias_penalty: float,
    scale_penalty: float = 0.0,
) -> SoftmaxMap:
    r"""Fit scale and bias with a ridge that pulls towards temperature scaling.

    Minimises the total negative log-likelihood plus
    :math:`\lambda_b \|b\|^2 + \lambda_s r^2 \sum_k (s_k - \bar s)^2`, where :math:`r` is the spread
    of the log-probabilities (so the fit does not change when all are multiplied by a constant).

    Parameters
    ----------
    log_proba : ndarray of shape (n, K)
        Log-probabilities.
    targets : ndarray of shape (K, n)
        Soft labels.
    weight : ndarray of shape (n,)
        Weights of the items.
    per_class_scale : bool
        One scale per class (vector scaling) or one for all (bias-corrected temperature).
    bias_penalty, scale_penalty : float
        :math:`\lambda_b` and :math:`\lambda_s`, in units of items.
    """
    L, spread = _centred_columns(log_proba, weight, centre=not per_class_scale)
    K = L.shape[0]
    total = float(weight.sum())
    share = weight / total
    n_scales = K if per_class_scale else 1
    to_scale = np.eye(K) if per_class_scale else np.ones((K, 1))
    # Ridge as a quadratic form in theta = (scales, biases), per unit of weight.
    ridge = np.zeros((n_scales + K, n_scales + K))
    if per_class_scale:
        ridge[:K, :K] = 2 * scale_penalty / total * (np.eye(K) - 1.0 / K)
    ridge[n_scales:, n_scales:] = 2 * bias_penalty / total * np.eye(K)

    def expand(theta: Vector) -> Expansion:
        Z = (to_scale @ theta[:n_scales])[:, None] * L + theta[n_scales:, None]
        Q, loss = _softmax_columns(Z, targets, share)
        residual = (Q - targets) * share
        by_scale = np.einsum("kn,kn->k", residual, L)
        gradient = np.concatenate([to_scale.T @ by_scale, residual.sum(1)])
        QW = Q * share
        QL = Q * L
        cross = np.diag(np.einsum("kn,kn->k", QW, L)) - (QL * share) @ Q.T
        hessian = np.block(
            [
                [to_scale.T @ _scale_block(QW, QL, L, share) @ to_scale, to_scale.T @ cross],
                [cross.T @ to_scale, np.diag(QW.sum(1)) - QW @ Q.T],
            ]
        )
        loss += 0.5 * float(theta @ ridge @ theta)
        return Expansion(loss, gradient + ridge @ theta, hessian + ridge)

    start = np.concatenate([np.full(n_scales, min(spread, 1.0)), np.zeros(K)])
    lower = np.concatenate([np.zeros(n_scales), np.full(K, -np.inf)])
    found = minimize_convex(expand, start, lower=lower)
    scale = to_scale @ found.point[:n_scales] / spread
    return SoftmaxMap(scale, found.point[n_scales:], found.converged)


def _scale_block(QW: Matrix, QL: Matrix, L: Matrix, share: Vector) -> Matrix:
    return np.diag(np.einsum("kn,kn,kn->k", QW, L, L)) - (QL * share) @ QL.T


def _centred_columns(
    log_proba: Matrix, weight: Vector, *, centre: bool = True
) -> tuple[Matrix, float]:
    """Return log-probabilities as (K, n) in units of their spread, and the spread.

    Working in these units keeps Newton's first steps out of the saturated region, where there is no
    curvature to follow.
    """
    L = np.ascontiguousarray(log_proba.T)
    centred = L - L.mean(axis=0)
    spread = float(np.sqrt(weight @ np.mean(centred**2, axis=0) / weight.sum()))
    if spread == 0.0:
        spread = 1.0
    return (centred if centre else L) / spread, spread


def _softmax_columns(Z: Matrix, targets: Matrix, share: Vector) -> tuple[Matrix, float]:
    """Return the softmax over axis 0 and the cross-entropy against ``targets``."""
    Z = Z - Z.max(axis=0)
    Q = np.exp(Z)
    norm = Q.sum(axis=0)
    loss = float(share @ (np.log(norm) - np.einsum("kn,kn->n", targets, Z)))
    Q /= norm
    return Q, loss
