"""Means over items, their standard errors, and who is as good as the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]


def mean_and_error(
    losses: Matrix, weight: Matrix | None = None, units: NDArray[np.int64] | None = None
) -> tuple[Matrix, Matrix]:
    """Return weighted means over the last axis, and their standard errors.

    Parameters
    ----------
    losses : ndarray of shape (..., n)
        One value per item; a difference of two methods' losses gives the error of the paired
        difference.
    weight : ndarray of shape (n,), optional
    units : ndarray of shape (n,), optional
        Group numbers 0..G-1; items of one group are not independent.

    Examples
    --------
    >>> mean_and_error(np.array([1.0, 2.0, 3.0]))
    (np.float64(2.0), np.float64(0.577...))
    >>> in_pairs = mean_and_error(np.array([1.0, 1.0, 3.0, 3.0]), units=np.array([0, 0, 1, 1]))
    >>> in_pairs
    (np.float64(2.0), np.float64(1.0))
    """
    losses = np.asarray(losses, dtype=np.float64)
    covariance_of_rows = covariance(np.atleast_2d(losses), weight, units)
    share = _shares(losses.shape[-1], weight)
    mean = losses @ share
    return mean, np.sqrt(np.diagonal(covariance_of_rows)).reshape(mean.shape)[()]


def covariance(
    losses: Matrix, weight: Matrix | None = None, units: NDArray[np.int64] | None = None
) -> Matrix:
    """Return the covariance of the means of several losses on the same items, shape (M, M)."""
    share = _shares(losses.shape[1], weight)
    residual = (losses - (losses @ share)[:, None]) * share
    if units is not None:
        n_units = int(units.max()) + 1
        residual = np.stack([np.bincount(units, row, minlength=n_units) for row in residual])
    # Units without weight say nothing; a single one says nothing about its spread.
    n = np.count_nonzero(share) if units is None else np.unique(units[share > 0]).size
    if n < 2:
        return np.full((losses.shape[0], losses.shape[0]), np.nan)
    return residual @ residual.T * n / (n - 1)


def within_one_se(
    values: ArrayLike, standard_errors: ArrayLike, *, higher_is_better: bool = False
) -> NDArray[np.bool_]:
    """Return which values come as close to the best as their own standard error.

    This is what the tables of the paper set in bold. It compares every method with the best one
    as if they had been tested on different items; paired differences are sharper.

    Examples
    --------
    >>> within_one_se([0.20, 0.22, 0.30, np.nan], [0.01, 0.03, 0.05, np.nan])
    array([ True,  True, False, False])
    """
    loss = np.asarray(values, dtype=np.float64) * (-1 if higher_is_better else 1)
    if np.isnan(loss).all():
        return np.zeros(loss.shape, dtype=bool)
    error = np.nan_to_num(np.asarray(standard_errors, dtype=np.float64))
    return loss - error <= np.nanmin(loss)


def _shares(n: int, weight: Matrix | None) -> Matrix:
    return np.full(n, 1 / n) if weight is None else weight / weight.sum()
