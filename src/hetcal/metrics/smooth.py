"""Calibration error without bins: a kernel whose width is the error itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy import sparse

from hetcal._typing import Matrix, Vector
from hetcal.data import CalibrationSet
from hetcal.metrics.marginals import calibration_marginals
from hetcal.metrics.statistics import ErrorStatistic, checked_value

_NAME = "smooth_calibration_error"
_GRID = 2048
_TOLERANCE = 1e-7


def smooth_calibration_error(
    y: Any,
    y_proba: Any,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    kind: str = "top-label",
    normalized: bool = True,
) -> float:
    r"""Return the smooth calibration error smECE of Blasiok and Nakkiran.

    Residuals (outcome minus score) are spread over the unit interval by a Gaussian kernel
    :math:`K_\sigma` that is reflected at 0 and 1, and what does not cancel is the error at that
    width:

    .. math:: \text{smECE}_\sigma = \int_0^1 \Big| \frac{\sum_i w_i K_\sigma(t, s_i) (o_i - s_i)}
              {\sum_i w_i} \Big| dt .

    It decreases with :math:`\sigma`; the value returned is the one width at which
    :math:`\text{smECE}_\sigma = \sigma`. There is nothing to tune, and it moves continuously with
    the probabilities, which no binned error does.

    Parameters
    ----------
    y, y_proba, classes, sample_weight, normalized
        As in :func:`brier_score`.
    kind : {"top-label", "class-wise", "binary"}, default="top-label"
        What is scored, as in :func:`expected_calibration_error`; ``"class-wise"`` is the mean over
        classes.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    Scores are placed on a grid of 2048 cells, on which the reflected kernel is diagonal in the
    cosine transform. A value below the width of a cell (0.0005) is computed with a kernel of that
    width, so it may come out smaller than the exact one, which is below 0.0005 as well.

    References
    ----------
    Blasiok, Nakkiran (2023), Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing,
    arXiv 2309.12236.

    Examples
    --------
    >>> y, y_proba = [1] * 6 + [0] * 4, [0.8] * 10
    >>> round(smooth_calibration_error(y, y_proba), 4)
    0.2
    """
    return checked_value(
        smooth_statistic, y, y_proba, classes, sample_weight, normalized, kind=kind
    )


def smooth_statistic(items: CalibrationSet, *, kind: str = "top-label") -> ErrorStatistic:
    """Return :func:`smooth_calibration_error` as a function of item counts."""
    weight = items.weights
    on_grid = [
        _spread(score, weight * (outcome - score))
        for score, outcome in calibration_marginals(items, kind, _NAME)
    ]

    own = [grid.sum(axis=1)[:, None] / weight.sum() for grid in on_grid]

    def parts(counts: Matrix) -> Matrix:
        total = weight @ counts
        residuals = [grid @ counts / total for grid in on_grid]
        error = np.mean([_self_consistent_width(drawn.T) for drawn in residuals], axis=0)
        noise = [
            _self_consistent_width((drawn - one).T)
            for drawn, one in zip(residuals, own, strict=True)
        ]
        return np.stack([error, error, error, np.mean(noise, axis=0)])

    return ErrorStatistic(parts)


def smooth_error_of_residuals(score: Vector, weight: Vector) -> Callable[[Matrix], Vector]:
    """Return the error as a function of residuals (outcome minus score) of shape (n, B).

    It is subadditive: the error of a sum of residuals is at most the sum of their errors.
    """
    spread = _spread(score, weight / weight.sum())
    return lambda residuals: _self_consistent_width((spread @ residuals).T)


class ReflectedKernel:
    """Sums over items around each of 2048 places in [0, 1], by the kernel of smECE.

    Attributes
    ----------
    places : ndarray of shape (2048,)
    width : float
        The smooth calibration error itself, as Blasiok and Nakkiran draw it; where that is small,
        Silverman's rule for the density of the scores, because a curve as narrow as the error of
        right probabilities shows nothing but noise.
    """

    def __init__(self, score: Vector, residual: Vector, weight: Vector, n_units: int) -> None:
        self._grid = _spread(score, weight / weight.sum())
        self.places = (np.arange(_GRID) + 0.5) / _GRID
        deviation = np.sqrt(np.cov(score, aweights=weight, ddof=0))
        silverman = 1.06 * float(deviation) * n_units**-0.2
        error = _self_consistent_width((self._grid @ residual)[None])[0]
        self.width = max(float(error), silverman, 1 / _GRID)

    def mean(self, values: Matrix) -> Matrix:
        """Return weighted means of values (n, B) around each place, shape (2048, B)."""
        return self.sums(values) / np.maximum(self.density, np.finfo(float).tiny)[:, None]

    def sums(self, values: Matrix) -> Matrix:
        """Return weighted sums of values (n, B) around each place, shape (2048, B)."""
        spectrum = scipy.fft.dct((self._grid @ values).T, type=2, norm="ortho", axis=1)
        return _smoothed(spectrum, np.full(values.shape[1], self.width)).T

    @cached_property
    def density(self) -> Vector:
        """Share of the weight around each place; all places together have 1."""
        return self.sums(np.ones((self._grid.shape[1], 1)))[:, 0]


def _spread(score: Vector, amount: Vector) -> sparse.csr_array:
    """Return the (cells, n) matrix that splits each amount between the two nearest cell centres."""
    n = score.shape[0]
    place = np.clip(score * _GRID - 0.5, 0.0, _GRID - 1.0)
    left = np.minimum(place.astype(np.int64), _GRID - 2)
    share = place - left
    cells = np.concatenate([left, left + 1])
    items = np.tile(np.arange(n), 2)
    shares = np.concatenate([(1 - share) * amount, share * amount])
    return sparse.csr_array((shares, (cells, items)), shape=(_GRID, n))


def _self_consistent_width(residuals: Matrix) -> Vector:
    """Return for each row of residuals (B, cells) the width that equals its own error."""
    spectrum = scipy.fft.dct(residuals, type=2, norm="ortho", axis=1)
    width = np.zeros(residuals.shape[0])
    above = _error_at_width(spectrum, width)
    open_rows = np.flatnonzero(above > _TOLERANCE)  # where residuals cancel altogether, it is 0
    spectrum, above = spectrum[open_rows], above[open_rows]
    low, high = np.zeros(open_rows.shape), np.ones(open_rows.shape)
    below = _error_at_width(spectrum, high) - high
    was_wide = np.full(open_rows.shape, -1)
    # False position, by Illinois's rule. The error falls with the width, so the distance to the
    # solution is at most the difference between the two.
    while open_rows.size:
        middle = (low * below - high * above) / (below - above)
        gap = _error_at_width(spectrum, middle) - middle
        width[open_rows] = middle
        wide = (gap < 0).astype(np.int64)
        other_end = np.where(wide == was_wide, 0.5, 1.0)  # twice the same end moved
        above, below = (
            np.where(wide, above * other_end, gap),
            np.where(wide, gap, below * other_end),
        )
        low, high = np.where(wide, low, middle), np.where(wide, middle, high)
        left = np.abs(gap) > _TOLERANCE
        open_rows, spectrum = open_rows[left], spectrum[left]
        low, high, was_wide = low[left], high[left], wide[left]
        above, below = above[left], below[left]
    return width


def _error_at_width(spectrum: Matrix, width: Vector) -> Vector:
    """Return smECE at one width per row.

    The reflected Gaussian is the heat kernel of the unit interval with reflecting ends: it damps
    the k-th cosine by exp(-(pi k width)^2 / 2).
    """
    return np.abs(_smoothed(spectrum, width)).sum(axis=1)


def _smoothed(spectrum: Matrix, width: Vector) -> Matrix:
    frequency = np.pi * np.arange(_GRID)
    resolved = np.maximum(width, 1 / _GRID)[:, None]
    damped = spectrum * np.exp(-0.5 * (frequency * resolved) ** 2)
    return scipy.fft.idct(damped, type=2, norm="ortho", axis=1)
