"""How many items in a row are alike, so that tests see only one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetcal._typing import Vector
from hetcal._validation.containers import as_vector

#: Neighbours that are less alike than this hardly change the rate of false alarms.
_LITTLE = 0.05
_LEAST_ITEMS = 100


def suggest_dependence(*scores: Any) -> int:
    """Return how far apart items must be for their scores to be uncorrelated.

    Parameters
    ----------
    *scores : array-like of shape (n,)
        Scores of items in the order in which they came, at least 100, from a time in which nothing
        changed: the columns ``p_support`` and ``p_distance`` of
        :meth:`~hetcal.SupportMonitor.update`. A trend within them would count as dependence.

    Returns
    -------
    int
        For ``SupportMonitor(dependence=)``: the first lag, of the slowest of the scores, at which
        the autocorrelation is below 0.05 or its own noise (two standard errors, by Bartlett's
        formula); at most n / 4.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> suggest_dependence(rng.random(1000))
    1
    >>> suggest_dependence(np.repeat(rng.random(200), 5))
    5
    """
    return max(_first_small_lag(_checked(score)) for score in scores)


def _checked(score: Any) -> Vector:
    values = np.asarray(as_vector(score, "scores"), dtype=np.float64)
    if len(values) < _LEAST_ITEMS or not np.isfinite(values).all():
        raise ValueError(
            f"suggest_dependence needs at least {_LEAST_ITEMS} finite scores in the order of time; "
            f"got {len(values)}. Pass a longer stretch of items."
        )
    return values


def _first_small_lag(values: Vector) -> int:
    correlation = autocorrelation(values, len(values) // 4)
    # Bartlett: the error at a lag grows with the correlation at all lags before it.
    error = np.sqrt((1 + 2 * np.append(0.0, np.cumsum(correlation**2)[:-1])) / len(values))
    small = correlation <= np.maximum(_LITTLE, 2 * error)
    return int(small.argmax()) + 1 if small.any() else len(correlation)


def autocorrelation(values: Vector, most: int) -> Vector:
    """Return the autocorrelation at lags 1 to ``most``."""
    centred = values - values.mean()
    power = np.abs(np.fft.rfft(centred, 2 * len(values))) ** 2
    covariance = np.fft.irfft(power)[: most + 1]
    return covariance[1:] / max(covariance[0], np.finfo(float).tiny)
