r"""How much is hidden: lower bounds on the grouping loss, and the part that was found.

The grouping loss is :math:`GL = E\,|P(y \mid x) - P(y \mid p)|^2`, what an ideal local model gains
in Brier score beyond the best global map. Of all items it is bounded by :func:`size_along`, along a
least-squares prediction from other folds
(:mod:`hetcal.heterogeneity.block_directions`). Within a region of p, where such a prediction is no
projection, any direction d whose mean given p is zero bounds it (:func:`found_part`):

.. math:: (E\, r \cdot d)^2 / E |d|^2 \le GL

(Cauchy and Schwarz). With a = mean of :math:`r \cdot d` and b = mean of :math:`|d|^2` over items
whose d was learned on other folds, the one-sided bound is :math:`(a / \sqrt b - 1.645\, se)_+^2`.
Folds teach each other, which up to doubles the variance where there is nothing to find; the error
is widened for that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import chdtrc, ndtri

from hetcal._typing import Matrix, Rows, Vector


@dataclass(frozen=True)
class FoundPart:
    """What one direction says about the grouping loss, over some items.

    Attributes
    ----------
    z : float
        Mean product of residual and direction over its error; about normal with variance at most 2
        when nothing is hidden.
    low : float
        One-sided lower bound.
    """

    z: float
    low: float


def found_part(
    residuals: Matrix,
    direction: Matrix,
    weight: Vector,
    groups: Rows | None,
    level: float = 0.05,
) -> FoundPart:
    """Measure along an out-of-sample direction; two classes as one column count twice."""
    total = weight.sum()
    share = weight / total
    product, square = (residuals * direction).sum(axis=1), (direction**2).sum(axis=1)
    a, b = share @ product, share @ square + 1e-15

    def error(values: Vector) -> float:
        terms = share * values
        if groups is None:
            return float(np.sqrt((terms**2).sum()))
        sums = np.bincount(groups, terms)
        n = np.count_nonzero(np.bincount(groups))
        return float(np.sqrt((sums**2).sum() * n / max(n - 1, 1)))

    z = a / (error(product) + 1e-15)
    wider = np.sqrt(1 + 4 / (4 + max(z, 0.0) ** 2))
    influence = (product - a) / np.sqrt(b) - a / (2 * b**1.5) * (square - b)
    root = a / np.sqrt(b) + ndtri(level) * wider * error(influence)
    both = 2.0 if residuals.shape[1] == 1 else 1.0
    return FoundPart(z=float(z), low=float(both * max(root, 0.0) ** 2))


def size_along(
    residuals: Matrix,
    direction: Matrix,
    weight: Vector,
    groups: Rows | None,
    level: float = 0.05,
) -> tuple[float, float]:
    r"""Return a one-sided lower bound on the grouping loss, and the part that was found.

    The direction d is a least-squares prediction from other folds, so that the sum of
    :math:`r \cdot d` estimates the squared length of what it holds of the truth, and exceeds it
    by chance as :math:`\chi^2_D(\lambda) - D` exceeds :math:`\lambda`: D is what the square of d
    holds beyond that sum, in units of the variance of a residual along d.
    """
    product, square = (residuals * direction).sum(axis=1), (direction**2).sum(axis=1)
    found, length = float(weight @ product), float(weight @ square) + 1e-15
    terms = weight * product
    if groups is not None:
        terms = np.bincount(groups, terms)
    if not terms.any():  # nothing is left to explain, or nothing explains it
        return 0.0, 0.0
    noise = float((terms**2).sum()) / length + 1e-300
    freedom = max((length - found) / noise, 1.0)
    low = noise * least_excess(found / noise + freedom, freedom, level)
    both = 2.0 if residuals.shape[1] == 1 else 1.0
    total = float(weight.sum())
    return both * low / total, both * max(found, 0.0) / total


def least_excess(value: float, freedom: float, level: float) -> float:
    """Return the least non-centrality of a chi-square with a chance of ``level`` to be larger."""

    def tail(excess: float) -> float:
        # Patnaik: a multiple of a central chi-square with the same mean and variance.
        mean, half = freedom + excess, freedom + 2 * excess
        return float(chdtrc(mean**2 / half, value * mean / half)) - level

    if tail(0.0) >= 0:
        return 0.0
    return float(scipy.optimize.brentq(tail, 0.0, 2 * max(value, 1.0), xtol=1e-6 * value))
