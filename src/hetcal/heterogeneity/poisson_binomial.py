"""How surprising a number of events is when each item has a probability of its own."""

from __future__ import annotations

import numpy as np

from hetcal._typing import Matrix, Vector

_WIDEST_PLAIN = 64  # beyond, products of polynomials are faster by the Fourier transform


def poisson_binomial(p: Vector) -> Vector:
    """Return the distribution of the number of events, shape (n + 1,).

    Products of polynomials, two and two: exact up to rounding, in time n log(n)^2.

    Examples
    --------
    >>> poisson_binomial(np.array([0.5, 0.5, 1.0]))
    array([0.  , 0.25, 0.5 , 0.25])
    """
    factors = np.column_stack([1 - p, p])
    while len(factors) > 1:
        if len(factors) % 2:
            one = np.zeros((1, factors.shape[1]))
            one[0, 0] = 1.0
            factors = np.vstack([factors, one])
        factors = _products(factors[::2], factors[1::2])
    return np.clip(factors[0, : len(p) + 1], 0.0, 1.0)


def _products(left: Matrix, right: Matrix) -> Matrix:
    width = left.shape[1]
    if width > _WIDEST_PLAIN:
        n = 2 * width - 1
        return np.fft.irfft(np.fft.rfft(left, n) * np.fft.rfft(right, n), n)
    out = np.zeros((len(left), 2 * width - 1))
    for j in range(width):
        out[:, j : j + width] += left[:, j : j + 1] * right
    return out


def mid_p_value(n_events: int, p: Vector) -> float:
    """Return the two-sided p-value of a number of events, of which the observed one counts half.

    Counting it in full would make tests of rare events reject far less often than their level.

    Examples
    --------
    >>> round(mid_p_value(0, np.full(100, 0.02)), 2)
    0.13
    """
    law = poisson_binomial(p)
    half = law[n_events] / 2
    below, above = law[:n_events].sum() + half, law[n_events + 1 :].sum() + half
    return float(min(2 * min(below, above), 1.0))
