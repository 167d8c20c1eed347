"""Isotonic regression that keeps every distinct value of the score apart.

scikit-learn's isotonic regression merges scores closer than about 1e-15 and so loses the ranking of
saturated probabilities; here two scores are tied only when they are equal.
"""

from __future__ import annotations

import numpy as np

from hetcal._typing import Vector
from hetcal.kernels._backend import native
from hetcal.kernels._checks import aligned, check_length, expect


def isotonic_fit(
    score: Vector, target: Vector, weight: Vector | None = None
) -> tuple[Vector, Vector]:
    r"""Fit the non-decreasing step function that minimises weighted squared error.

    Minimises :math:`\sum_i w_i (m(s_i) - t_i)^2` over non-decreasing :math:`m`.

    Parameters
    ----------
    score, target : ndarray of shape (n,)
        Score to be mapped, and what it should map to.
    weight : ndarray of shape (n,), optional
        Non-negative weights; items of weight 0 are left out.

    Returns
    -------
    thresholds, levels : ndarray of shape (n_distinct,)
        The distinct scores in increasing order, and the fitted value at each; interpolate.

    Examples
    --------
    >>> import numpy as np
    >>> isotonic_fit(np.array([0.1, 0.2, 0.2, 0.9]), np.array([0.0, 1.0, 0.0, 1.0]))
    (array([0.1, 0.2, 0.9]), array([0. , 0.5, 1. ]))
    """
    if weight is None:
        weight = np.ones_like(score, dtype=np.float64)
    used = weight > 0
    thresholds, group = np.unique(score[used], return_inverse=True)
    mass = np.bincount(group, weights=weight[used]).astype(np.float64)
    means = np.bincount(group, weights=weight[used] * target[used]) / mass
    return thresholds, pool_adjacent_violators(means, mass)


def pool_adjacent_violators(values: Vector, weights: Vector) -> Vector:
    """Return the non-decreasing weighted least-squares fit to ``values`` (weights > 0)."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    values, weights = aligned(values, weights)
    core = native()
    if core is None:
        check_length("pool_adjacent_violators", "weights", weights, len(values))
        good = (weights > 0).all()
        expect(good, "pool_adjacent_violators", "weights must be more than 0", "others")
        return _pool_adjacent_violators_pure(values, weights)
    fitted = np.empty_like(values)
    core.pool_adjacent_violators(values, weights, fitted)
    return fitted


def _pool_adjacent_violators_pure(values: Vector, weights: Vector) -> Vector:
    sums: list[float] = []
    masses: list[float] = []
    counts: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        total, mass, count = value * weight, weight, 1
        while sums and sums[-1] / masses[-1] >= total / mass:
            total, mass, count = total + sums.pop(), mass + masses.pop(), count + counts.pop()
        sums.append(total)
        masses.append(mass)
        counts.append(count)
    return np.repeat(np.array(sums) / np.array(masses), counts)
