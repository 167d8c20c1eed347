r"""Which parts of blocks, along which contrasts of the classes, surely hold something.

Functions and residuals are standardised, so that noise alone has moments with the covariance of
the functions' Gram matrix. A part of m functions explains the squared length

.. math:: b' G^{-1} b \sim \chi^2_m(\lambda)

of the residuals along a contrast of the classes. The part counts for which the least
:math:`\lambda` that explains it is largest, with regard to how many parts of its kind, and how
many contrasts, were looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import chdtri, gammaln

from hetcal._typing import Matrix, Rows, Vector

_STEPS = 5
_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class Moments:
    """Products of functions with each other and with residuals, outside a fold or each fold.

    Attributes
    ----------
    gram : ndarray of shape (..., m, m)
    moment : ndarray of shape (..., m, L)
        Along each of L contrasts of the classes.
    """

    gram: Matrix
    moment: Matrix

    def of(self, part: Rows) -> Moments:
        """Return those of some functions, or (P, m) those of several parts."""
        gram = self.gram[..., part[..., :, None], part[..., None, :]]
        return Moments(gram, self.moment[..., part, :])

    def of_fold(self, j: int) -> Moments:
        """Return those outside one fold."""
        return Moments(self.gram[j], self.moment[j])

    def along(self, contrast: Vector) -> Moments:
        """Return those along one contrast."""
        return Moments(self.gram, self.moment @ contrast[:, None])

    def less(self, chosen: Chosen) -> Moments:
        """Return those of the residuals that chosen functions leave along their contrast."""
        own = self.along(chosen.contrast)
        part = own.of(chosen.functions)
        fitted = self.gram[:, chosen.functions] @ least_squares(part.gram, part.moment)
        return Moments(self.gram, self.moment - fitted * chosen.contrast)

    def squares(self) -> Matrix:
        """Return the squared lengths of the residuals' projections, (..., L, L)."""
        return np.swapaxes(self.moment, -1, -2) @ least_squares(self.gram, self.moment)

    def best_contrast(self) -> tuple[Vector, Matrix]:
        """Return the largest squared length along any contrast, and the contrast."""
        size, vectors = np.linalg.eigh(self.squares())
        return size[..., -1], vectors[..., -1]


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of blocks with the same number of functions.

    Attributes
    ----------
    functions : ndarray of shape (P, m)
        Their numbers.
    levels : ndarray of shape (P,)
        Chance at which noise may pass for something.
    """

    functions: Rows
    levels: Vector


@dataclass(frozen=True, eq=False)
class Chosen:
    """Functions along a contrast of the classes, and the size that is sure."""

    functions: Rows
    contrast: Vector
    sure: float


def least_squares(gram: Matrix, moment: Matrix) -> Matrix:
    """Solve normal equations; functions may be nearly the same."""
    m = gram.shape[-1]
    size = np.trace(gram, axis1=-2, axis2=-1)[..., None, None] / m
    ridged = gram + (_RIDGE * size + 1e-12) * np.eye(m)
    return np.asarray(np.linalg.solve(ridged, moment), dtype=np.float64)


def sure_size(square: Vector, m: int, n_contrasts: int, levels: Vector) -> Vector:
    r"""Return the least size that explains the squared length along the best of some contrasts.

    A square of the size u has the mean :math:`u + \nu` and the variance :math:`4 u + 2 \nu`, with
    the degrees of freedom :math:`\nu` of m functions and all contrasts but one. It may exceed its
    mean by as many standard deviations as noise does at the level. Below zero, it may be noise.

    Examples
    --------
    >>> sure_size(np.array([20.0, 60.0]), 4, 1, np.array([0.01, 0.01])).round(1)
    array([ 2.3, 23.1])
    """
    freedom = m + n_contrasts - 1
    z2 = np.array([_quantile(level, m, n_contrasts) for level in levels.tolist()]) ** 2
    size = np.maximum(square - freedom, 0.0)
    middle = size + 2 * z2
    return middle - np.sqrt(middle**2 - size**2 + 2 * freedom * z2)


@cache
def _quantile(level: float, m: int, n_contrasts: int) -> float:
    r"""Return by how many standard deviations noise alone exceeds its mean at a level.

    The best contrast exceeds a large value at most as often as a chi-square variable does, times
    :math:`\sqrt\pi\, \Gamma((m + L - 1) / 2) / (\Gamma(m / 2)\, \Gamma(L / 2))` for L contrasts.
    """
    freedom = m + n_contrasts - 1
    log_times = gammaln([0.5, freedom / 2]).sum() - gammaln([m / 2, n_contrasts / 2]).sum()
    return float((chdtri(freedom, level / np.exp(log_times)) - freedom) / np.sqrt(2 * freedom))


def by_size(parts: list[tuple[Rows, float]]) -> list[Parts]:
    """Put parts with one number of functions together: they are looked at at once."""
    found = []
    for m in sorted({len(part) for part, _ in parts}):
        functions, levels = zip(*[pair for pair in parts if len(pair[0]) == m], strict=True)
        found.append(Parts(np.stack(functions), np.array(levels)))
    return found


def choose(moments: Moments, parts: list[Parts]) -> list[Chosen]:
    """Add the part and contrast that is surest while one is; the first in any case."""
    chosen: list[Chosen] = []
    for _ in range(_STEPS):
        best = _surest(moments, parts, [one.contrast for one in chosen])
        if chosen and best.sure <= 0:
            break
        chosen.append(best)
        moments = moments.less(best)
    return chosen


def _surest(moments: Moments, parts: list[Parts], known: list[Vector]) -> Chosen:
    """Return what is surest, along a contrast that was chosen before or a new one."""
    L = moments.moment.shape[-1]
    found = []
    for same in parts:
        m, left = same.functions.shape[1], moments.of(same.functions)
        every = [(*left.best_contrast(), L)]
        for contrast in known if L > 1 else []:
            square = left.along(contrast).squares()[:, 0, 0]
            every.append((square, np.tile(contrast, (len(square), 1)), 1))
        for square, contrasts, n_contrasts in every:
            sure = sure_size(square, m, n_contrasts, same.levels)
            k = int(sure.argmax())
            found.append(Chosen(same.functions[k], contrasts[k], float(sure[k])))
    return max(found, key=lambda one: one.sure)
