r"""The flexible global map :math:`p_g = h(p)`: the best that looking at p alone can do.

"No hidden heterogeneity" means :math:`P(y \mid x) = h(p)` for *some* :math:`h`, so the map that
stands for :math:`h` must be able to bend. It is a penalised multinomial regression,

.. math::

    q_k \propto \exp\Bigl(\sum_m a_m \varphi_m(\log p_k) + \sum_j c_{jk} \psi_j(\log p_k)\Bigr),

with :math:`\varphi` (shared by all classes) a straight line and hinges at quantiles of the
log-probabilities, and :math:`\psi` (one coefficient per class) a constant, a slope and, for up to
three classes, the hinges again. All but the shared slope are pulled to zero by a ridge, so that few
items give temperature scaling, more items its bias-corrected form, and many items a curve.

The Fisher information does not depend on the labels. So the map for labels drawn from a fitted map,
which the null distribution needs again and again, takes a few steps with one factorised matrix.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hetcal._typing import Matrix, Rows, Vector
from hetcal.data import Folds
from hetcal.kernels.convex import Expansion, minimize_convex
from hetcal.kernels.scaling import smoothed_targets

_KNOT_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
_MOST_CLASSES_WITH_HINGES = 3  # of their own; beyond, classes share the hinges
_MOST_CLASSES_WITH_SLOPES = 30
# Ridge in units of items: how many items it takes to outweigh each kind of coefficient.
_HINGE_RIDGE, _BIAS_RIDGE, _SLOPE_RIDGE, _CLASS_HINGE_RIDGE = 0.5, 0.2, 1.0, 2.0
_TINY_RIDGE = 1e-8  # on the shared slope, which must be free, but never singular
_CHORD_STEPS, _CHORD_TOLERANCE, _SHORTEST = 15, 1e-7, 1e-3


@dataclass(frozen=True, eq=False)
class SplineBasis:
    """Basis functions of the log-probabilities; chosen without looking at labels.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Where the hinges bend.
    scale : float
        Spread of the log-probabilities; the basis is in units of it.
    n_classes : int
    """

    knots: Vector
    scale: float
    n_classes: int

    @classmethod
    def from_log_proba(cls, log_proba: Matrix) -> SplineBasis:
        """Put the knots where the two leading classes of the items lie."""
        leading = np.sort(log_proba, axis=1)[:, -2:]
        knots = np.unique(np.quantile(leading, _KNOT_QUANTILES))
        centred = log_proba - log_proba.mean(axis=1, keepdims=True)
        scale = float(np.sqrt(np.mean(centred**2)))
        return cls(knots, scale if scale > 0 else 1.0, log_proba.shape[1])

    def shared(self, log_proba: Matrix) -> Matrix:
        """Return the shared functions, shape (M, n, K)."""
        return np.stack([log_proba / self.scale, *self._hinges(log_proba)])

    def per_class(self, log_proba: Matrix) -> Matrix:
        """Return the functions with one coefficient per class, shape (J, n, K)."""
        functions = [np.ones_like(log_proba)]
        if self.n_classes <= _MOST_CLASSES_WITH_SLOPES:
            functions.append(log_proba / self.scale)
        if self.n_classes <= _MOST_CLASSES_WITH_HINGES:
            functions.extend(self._hinges(log_proba))
        return np.stack(functions)

    @cached_property
    def ridge(self) -> Vector:
        """Penalty of each coefficient: shared ones first, then J blocks of K."""
        ridge = [_TINY_RIDGE] + [_HINGE_RIDGE] * len(self.knots) + [_BIAS_RIDGE] * self.n_classes
        if self.n_classes <= _MOST_CLASSES_WITH_SLOPES:
            ridge += [_SLOPE_RIDGE] * self.n_classes
        if self.n_classes <= _MOST_CLASSES_WITH_HINGES:
            ridge += [_CLASS_HINGE_RIDGE] * (len(self.knots) * self.n_classes)
        return np.array(ridge)

    def _hinges(self, log_proba: Matrix) -> list[Matrix]:
        return [np.maximum(log_proba - knot, 0.0) / self.scale for knot in self.knots]


@dataclass(frozen=True, eq=False)
class FlexibleMap:
    """A fitted map; call :meth:`apply`."""

    basis: SplineBasis
    theta: Vector

    def apply(self, log_proba: Matrix) -> Matrix:
        """Return the recalibrated probabilities, shape (n, K)."""
        return _Rows(self.basis, log_proba).proba(self.theta)


def fit_flexible_map(
    log_proba: Matrix,
    codes: Rows,
    weight: Vector,
    *,
    basis: SplineBasis | None = None,
    start: Vector | None = None,
) -> FlexibleMap:
    """Fit the map by maximum penalised likelihood.

    Parameters
    ----------
    log_proba : ndarray of shape (n, K)
        Finite log-probabilities.
    codes : ndarray of int, shape (n,)
        Classes observed.
    weight : ndarray of shape (n,)
        Weights of the items, not all zero.
    basis : SplineBasis, optional
        Basis in use; from ``log_proba`` when None.
    start : ndarray, optional
        Coefficients to begin with.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 4000)
    >>> y = (rng.uniform(size=4000) < 0.8 * p).astype(int)       # it happens less often than said
    >>> fitted = fit_flexible_map(np.log(np.column_stack([1 - p, p])), y, np.ones(4000))
    >>> fitted.apply(np.log([[0.5, 0.5]])).round(1)
    array([[0.6, 0.4]])
    """
    basis = SplineBasis.from_log_proba(log_proba) if basis is None else basis
    rows = _Rows(basis, log_proba, weight)
    targets = smoothed_targets(codes, basis.n_classes, weight).T
    if start is None:
        start = np.zeros(len(basis.ridge))
        start[0] = min(basis.scale, 1.0)
    found = minimize_convex(lambda theta: rows.expand(theta, targets), start)
    return FlexibleMap(basis, found.point)


class CrossFittedMap:
    """The map cross-fitted over folds, with quick refits to labels drawn from the map itself.

    Parameters
    ----------
    log_proba : ndarray of shape (n, K)
    codes : ndarray of int, shape (n,)
    weight : ndarray of shape (n,)
    folds : Folds
        Every item is predicted by a map that was fitted to the other folds.

    Attributes
    ----------
    full : FlexibleMap
        Fitted to all items: the law that null labels are drawn from, and the map for new items.
    fitted : ndarray of shape (n, K)
        ``full`` applied to the items.
    proba : ndarray of shape (n, K)
        Cross-fitted predictions.
    """

    def __init__(self, log_proba: Matrix, codes: Rows, weight: Vector, folds: Folds):
        self.full = fit_flexible_map(log_proba, codes, weight)
        self.fitted = self.full.apply(log_proba)
        basis, theta = self.full.basis, self.full.theta
        self._folds = []
        self.proba = np.empty_like(log_proba)
        for train, test in folds:
            if weight[train].sum() == 0:
                self.proba[test] = self.fitted[test]
                continue
            part = fit_flexible_map(
                log_proba[train], codes[train], weight[train], basis=basis, start=theta
            )
            self.proba[test] = part.apply(log_proba[test])
            self._folds.append(
                (
                    train,
                    test,
                    _Rows(basis, log_proba[train], weight[train]),
                    _Rows(basis, log_proba[test]),
                )
            )

    def refit(self, codes: Rows) -> Matrix:
        """Return cross-fitted predictions for labels that were drawn from ``fitted``."""
        proba = self.fitted.copy()
        for (train, test, train_rows, test_rows), factor in zip(
            self._folds, self._factors, strict=True
        ):
            targets = smoothed_targets(
                codes[train], train_rows.basis.n_classes, train_rows.weight
            ).T
            proba[test] = test_rows.proba(_chord(train_rows, factor, self.full.theta, targets))
        return proba

    def of_the_identity(self, log_proba: Matrix) -> CrossFittedMap:
        """Return one with the same folds whose null labels come from the probabilities as they are.

        Its ``proba`` is still that of the observed labels.
        """
        basis = self.full.basis
        theta = np.zeros(len(basis.ridge))
        theta[0] = basis.scale  # the shared functions begin with log p over the scale
        other = copy.copy(self)
        other.__dict__.pop("_factors", None)
        other.full = FlexibleMap(basis, theta)
        other.fitted = other.full.apply(log_proba)
        return other

    @cached_property
    def _factors(self) -> list:
        """The factorised information of each fold at the full map's coefficients."""
        theta = self.full.theta
        return [cho_factor(rows.hessian(rows.proba(theta))) for _, _, rows, _ in self._folds]


def _chord(rows: _Rows, factor: tuple, theta: Vector, targets: Matrix) -> Vector:
    """Minimise from nearby with one fixed matrix; steps that overshoot are shortened."""
    value, length = rows.value(theta, targets), 1.0
    for _ in range(_CHORD_STEPS):
        step = cho_solve(factor, rows.gradient(theta, targets)[0])
        trial_value = rows.value(theta - length * step, targets)
        while trial_value > value and length > _SHORTEST:
            length /= 2
            trial_value = rows.value(theta - length * step, targets)
        if trial_value > value:
            break
        theta = theta - length * step
        gained, value = value - trial_value, trial_value
        if gained < _CHORD_TOLERANCE:
            break
    return theta


class _Rows:
    """Items seen through a basis: value, gradient and Hessian of their likelihood."""

    def __init__(self, basis: SplineBasis, log_proba: Matrix, weight: Vector | None = None):
        self.basis = basis
        self.weight = np.ones(len(log_proba)) if weight is None else weight
        self.total = float(self.weight.sum())
        self._shared = basis.shared(log_proba)
        self._per_class = basis.per_class(log_proba)

    def logits(self, theta: Vector) -> Matrix:
        M, J, K = len(self._shared), len(self._per_class), self.basis.n_classes
        return np.tensordot(theta[:M], self._shared, 1) + np.einsum(
            "jk,jnk->nk", theta[M:].reshape(J, K), self._per_class
        )

    def proba(self, theta: Vector) -> Matrix:
        return self._softmax(theta)[0]

    def value(self, theta: Vector, targets: Matrix) -> float:
        _, log_q = self._softmax(theta)
        loss = -float(self.weight @ np.einsum("nk,nk->n", targets, log_q))
        return (loss + float(self.basis.ridge @ theta**2)) / self.total

    def expand(self, theta: Vector, targets: Matrix) -> Expansion:
        gradient, Q = self.gradient(theta, targets)
        return Expansion(
            self.value(theta, targets), gradient / self.total, self.hessian(Q) / self.total
        )

    def gradient(self, theta: Vector, targets: Matrix) -> tuple[Vector, Matrix]:
        Q = self.proba(theta)
        residual = (Q - targets) * self.weight[:, None]
        shared = np.einsum("mnk,nk->m", self._shared, residual)
        per_class = np.einsum("jnk,nk->jk", self._per_class, residual).ravel()
        return np.concatenate([shared, per_class]) + 2 * self.basis.ridge * theta, Q

    def hessian(self, Q: Matrix) -> Matrix:
        """Return the information: within-item covariance of the basis under Q, plus the ridge."""
        M, J, K = len(self._shared), len(self._per_class), self.basis.n_classes
        weighted = Q * self.weight[:, None]
        means = np.einsum("mnk,nk->nm", self._shared, Q)
        per_class = (self._per_class * Q).transpose(1, 0, 2).reshape(len(Q), J * K)
        C = np.hstack([means, per_class])
        H = -(C * self.weight[:, None]).T @ C
        flat = self._shared.reshape(M, -1)
        H[:M, :M] += (flat * weighted.ravel()) @ flat.T
        cross = np.einsum("mnk,jnk,nk->mjk", self._shared, self._per_class, weighted, optimize=True)
        H[:M, M:] += cross.reshape(M, J * K)
        H[M:, :M] += cross.reshape(M, J * K).T
        own = np.einsum(
            "ink,jnk,nk->ijk", self._per_class, self._per_class, weighted, optimize=True
        )
        k = np.arange(K)
        for i in range(J):
            for j in range(J):
                H[M + i * K + k, M + j * K + k] += own[i, j]
        H[np.diag_indices_from(H)] += 2 * self.basis.ridge
        return H

    def _softmax(self, theta: Vector) -> tuple[Matrix, Matrix]:
        Z = self.logits(theta)
        Z -= Z.max(axis=1, keepdims=True)
        log_norm = np.log(np.exp(Z).sum(axis=1, keepdims=True))
        log_q = Z - log_norm
        return np.exp(log_q), log_q
