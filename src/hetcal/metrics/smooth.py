"""Calibration error without bins: a kernel whose width is the error itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy import sparse

from hetcal._typing import Matrix, Vector
from hetcal.data import CalibrationSet
from hetcal.metrics.marginals import calibration_marginals
from hetcal.metrics.statistics import Statistic, checked_value

_NAME = "smooth_calibration_error"
_GRID = 2048
_BISECTIONS = 24


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


def smooth_statistic(items: CalibrationSet, *, kind: str = "top-label") -> Statistic:
    """Return :func:`smooth_calibration_error` as a function of item counts."""
    weight = items.weights
    on_grid = [
        _spread(score, weight * (outcome - score))
        for score, outcome in calibration_marginals(items, kind, _NAME)
    ]

    def statistic(counts: Matrix) -> Vector:
        total = weight @ counts
        errors = [_self_consistent_width((grid @ counts / total).T) for grid in on_grid]
        return np.mean(errors, axis=0)

    return statistic


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
    low, high = np.zeros(residuals.shape[0]), np.ones(residuals.shape[0])
    for _ in range(_BISECTIONS):
        width = (low + high) / 2
        too_narrow = _error_at_width(spectrum, width) > width
        low, high = np.where(too_narrow, width, low), np.where(too_narrow, high, width)
    # Where the residuals cancel altogether the search ends at its first step above zero.
    return np.where(high < 2.0 ** (1 - _BISECTIONS), 0.0, (low + high) / 2)


def _error_at_width(spectrum: Matrix, width: Vector) -> Vector:
    """Return smECE at one width per row.

    The reflected Gaussian is the heat kernel of the unit interval with reflecting ends: it damps
    the k-th cosine by exp(-(pi k width)^2 / 2).
    """
    frequency = np.pi * np.arange(_GRID)
    resolved = np.maximum(width, 1 / _GRID)[:, None]
    damped = spectrum * np.exp(-0.5 * (frequency * resolved) ** 2)
    return np.abs(scipy.fft.idct(damped, type=2, norm="ortho", axis=1)).sum(axis=1)
