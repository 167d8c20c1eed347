"""The null distribution: labels drawn from the global map, p-values, false-discovery control."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from hetcal._typing import Matrix, Vector

_RANKS_FROM = 199  # draws from which on their ranks are fine enough for p-values


def draw_labels(proba: Matrix, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return ``n_draws`` label vectors, item i's label drawn from row i; shape (n_draws, n).

    Examples
    --------
    >>> import numpy as np
    >>> draw_labels(np.array([[1.0, 0.0], [0.0, 1.0]]), 3, np.random.default_rng(0))
    array([[0, 1],
           [0, 1],
           [0, 1]])
    """
    # The last class takes what rounding leaves of the sum.
    thresholds = np.cumsum(proba, axis=1)[:, :-1]
    uniform = rng.uniform(size=(n_draws, len(proba), 1))
    return (uniform >= thresholds).sum(axis=2)


def null_p_values(observed: Vector, null: Matrix) -> Vector:
    r"""Return one-sided p-values of statistics from ``B`` draws under the null.

    With few draws the statistic is referred to Student's distribution,
    :math:`t = (T - \bar T^*) / (s^* \sqrt{1 + 1/B})` with :math:`B - 1` degrees of freedom; with
    199 or more to its rank, :math:`(1 + \#\{T^* \ge T\}) / (B + 1)`.

    Parameters
    ----------
    observed : ndarray of shape (m,)
    null : ndarray of shape (m, B)

    Examples
    --------
    >>> import numpy as np
    >>> null_p_values(np.array([2.0, 500.0]), np.tile(np.arange(199.0), (2, 1)))
    array([0.99 , 0.005])
    """
    B = null.shape[1]
    if B >= _RANKS_FROM:
        p = (1 + (null >= observed[:, None]).sum(axis=1)) / (B + 1)
        return np.where(np.isnan(observed), np.nan, p)
    if B < 3:
        return np.full(len(observed), np.nan)
    spread = null.std(axis=1, ddof=1) * np.sqrt(1 + 1 / B)
    with np.errstate(invalid="ignore", divide="ignore"):
        return student_t.sf((observed - null.mean(axis=1)) / spread, B - 1)


def benjamini_hochberg(p_values: Vector) -> Vector:
    """Return adjusted p-values that control the false discovery rate; NaN stays NaN.

    Examples
    --------
    >>> import numpy as np
    >>> benjamini_hochberg(np.array([0.01, 0.02, 0.9, np.nan]))
    array([0.03, 0.03, 0.9 ,  nan])
    """
    q = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    adjusted = p_values[order] * len(order) / np.arange(1, len(order) + 1)
    q[order] = np.minimum.accumulate(adjusted[::-1])[::-1].clip(max=1.0)
    return q


def adjusted_among(p_values: Vector, family: Vector) -> Vector:
    """Return the adjusted value of p-values that joined a family which was adjusted without them.

    Each takes its place in the family as if it replaced the member just above it, so it changes
    nobody else's value.
    """
    known = np.sort(family[~np.isnan(family)])
    if len(known) == 0:
        return p_values.copy()
    adjusted = np.minimum.accumulate((known * len(known) / np.arange(1, len(known) + 1))[::-1])[
        ::-1
    ]
    rank = np.searchsorted(known, p_values, side="left")
    above = np.append(adjusted, 1.0)[rank]
    own = p_values * len(known) / np.minimum(rank + 1, len(known))
    return np.minimum(np.maximum(np.minimum(own, above), p_values), 1.0)
