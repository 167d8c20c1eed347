r"""Which parts of blocks, along which contrasts of the classes, raise a lower bound most.

Functions and residuals are standardised, so that noise alone has moments with the covariance of
the functions' Gram matrix. A part of m functions explains the squared length

.. math:: b' G^{-1} b \sim \chi^2_m(\lambda)

of the residuals along a contrast of the classes. It is a candidate where that is unlikely to be
noise, with regard to how many parts of its kind were looked at; of the candidates the one counts
that raises :math:`\hat\lambda - 1.645 \sqrt{2 m + 4 \hat\lambda}`, about what the bound will be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from hetcal._typing import Matrix, Rows, Vector

_STEPS = 5
_RIDGE = 1e-3
_QUANTILE = 1.645


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
        Odds of each to hold anything, before residuals are seen.
    """

    functions: Rows
    levels: Vector


@dataclass(frozen=True, eq=False)
class Chosen:
    """Functions along a contrast; how large they are, in units of the noise."""

    functions: Rows
    contrast: Vector
    size: float
    freedom: int
    score: float


def least_squares(gram: Matrix, moment: Matrix) -> Matrix:
    """Solve normal equations; functions may be nearly the same."""
    m = gram.shape[-1]
    size = np.trace(gram, axis1=-2, axis2=-1)[..., None, None] / m
    ridged = gram + (_RIDGE * size + 1e-12) * np.eye(m)
    return np.asarray(np.linalg.solve(ridged, moment), dtype=np.float64)


def log_odds_of_signal(square: Matrix, m: int, L: int, level: float | Vector) -> Matrix:
    r"""Return the logarithm of the odds that m functions along the best of L contrasts hold any.

    The chance of noise is that of a chi-square variable with m + L - 1 degrees of freedom
    (Chernoff's bound) times the number of contrasts that count as different,
    :math:`\sqrt\pi\, \Gamma((m + L - 1) / 2) / (\Gamma(m / 2)\, \Gamma(L / 2))`.

    Examples
    --------
    >>> bool(log_odds_of_signal(40.0, 4, 1, 0.01) > 0 > log_odds_of_signal(40.0, 4, 9, 0.01))
    True
    """
    freedom = m + L - 1
    ratio = np.maximum(square / freedom, 1.0)
    different = gammaln([0.5, freedom / 2]).sum() - gammaln([m / 2, L / 2]).sum()
    return freedom / 2 * (ratio - 1 - np.log(ratio)) + np.log(level) - different


def by_size(parts: list[tuple[Rows, float]]) -> list[Parts]:
    """Put parts with one number of functions together: they are looked at at once."""
    found = []
    for m in sorted({len(part) for part, _ in parts}):
        functions, levels = zip(*[pair for pair in parts if len(pair[0]) == m], strict=True)
        found.append(Parts(np.stack(functions), np.array(levels)))
    return found


def choose(moments: Moments, parts: list[Parts]) -> list[Chosen]:
    """Add parts while they raise the bound; one in any case."""
    chosen: list[Chosen] = []
    for _ in range(_STEPS):
        best = _best(moments, parts, chosen)
        if chosen and best.score <= 0:
            break
        chosen.append(best)
        moments = moments.less(best)
    return chosen


def _best(moments: Moments, parts: list[Parts], chosen: list[Chosen]) -> Chosen:
    """Return what raises the bound most, along a contrast that was chosen or a new one.

    Where all may be noise, it is what is least likely to be.
    """
    size, freedom = sum(one.size for one in chosen), sum(one.freedom for one in chosen)
    L = moments.moment.shape[-1]
    known = [one.contrast for one in chosen] if L > 1 else []
    found = []
    for same in parts:
        m, left = same.functions.shape[1], moments.of(same.functions)
        every = [(*left.best_contrast(), L)]
        every += [
            (left.along(c).squares()[:, 0, 0], np.tile(c, (len(same.levels), 1)), 1) for c in known
        ]
        for square, contrasts, n_contrasts in every:
            own = m + n_contrasts - 1
            more = np.maximum(square - own, 0.0)
            gain = _bound(size + more, freedom + own) - _bound(size, freedom)
            odds = log_odds_of_signal(square, m, n_contrasts, same.levels)
            score = np.where(odds > 0, np.maximum(gain, 0.0), odds)
            k = int(score.argmax())
            found.append(
                Chosen(same.functions[k], contrasts[k], float(more[k]), own, float(score[k]))
            )
    return max(found, key=lambda one: one.score)


def _bound(size: Matrix | float, freedom: int) -> Matrix | float:
    """Return about what the bound is of a size, in units of the noise."""
    return size - _QUANTILE * np.sqrt(2 * freedom + 4 * size)
