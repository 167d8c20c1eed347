r"""Means over items, their standard errors and intervals, and who is as good as the best.

Value ± 1.96 standard errors is a poor interval of a mean loss in two cases, and
:func:`interval_of_mean` knows both.

- Few groups, or groups of unequal size, estimate the error itself badly. The squares of their
  residuals are weighted so that their expectation is right (Bell and McCaffrey 2002), and Student's
  quantile has as many degrees of freedom as the variance of their sum says (Satterthwaite). Both
  need a guess of how alike the items of a group are, for which the losses' own design effect is
  taken.
- Losses are skewed: most items cost little and a few cost much, most of all where events are rare.
  A sample without the few has a low mean *and* a small error. So the variance is let grow with the
  mean that is asked about: with :math:`z = (\mu - \bar\ell) / s`, s being the standard error, and
  :math:`\gamma` the skewness of the losses over the root of their number, the interval holds every
  :math:`\mu` with :math:`z^2 \le t^2 (1 + c \gamma z)`, as Wilson's interval of a share does.
  :math:`c = (2 t^2 + 1) / 3 t^2` makes its ends those of Hall (1992) where skewness is small; it
  reaches further up than down, and stays finite.

And what has not happened in n items may still happen: a share of :math:`t^2 / (n + t^2)` of new
items, which is the upper end of Wilson's interval of a share where none of n was seen (the rule of
three is a one-sided version of it). Where it is known what an item costs with each label, the
interval reaches at least to where so many have their worst label, and so many their best. So equal
losses are no certainty, unless no label could change them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from hetcal._typing import Matrix, Vector

_NEARLY_ALL = 0.999
_LEAST_WEIGHT = 1e-300
# What means of losses that are never below 0 can be at most.
_LARGEST = {
    "accuracy": 1.0,
    **dict.fromkeys(("brier", "brier_score", "log_loss"), np.inf),
}


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


def interval_of_mean(
    losses: Matrix,
    weight: Vector | None = None,
    units: NDArray[np.int64] | None = None,
    *,
    confidence: float = 0.95,
    metric: str | None = None,
    by_label: Matrix | None = None,
) -> tuple[Matrix, Matrix]:
    """Return both ends of an interval of the mean over the law, for each row of losses.

    Parameters
    ----------
    losses : ndarray of shape (..., n)
    weight, units
        As in :func:`mean_and_error`.
    confidence : float, default=0.95
    metric : str, optional
        What the losses are. No interval of an accuracy, a Brier score or a log loss reaches beyond
        what these can be.
    by_label : ndarray of shape (..., n, K), optional
        What each item would cost with each label. Without it equal losses have an interval of no
        width, and rare losses that were not seen are not counted.

    Returns
    -------
    low, high : ndarray of shape (...)
        NaN where there is one item, or one group, or one that has nearly all the weight.

    Examples
    --------
    One item in twenty costs much:

    >>> losses = np.tile([0.0] * 19 + [1.0], 10)
    >>> low, high = interval_of_mean(losses)
    >>> round(float(low), 3), round(float(high), 3)
    (0.025, 0.088)

    None of 100 costs anything, and any of them might have cost 1:

    >>> low, high = interval_of_mean(np.zeros(100), by_label=np.tile([0.0, 1.0], (100, 1)))
    >>> round(float(low), 3), round(float(high), 3)
    (0.0, 0.038)
    """
    losses = np.asarray(losses, dtype=np.float64)
    possible = losses[..., None] if by_label is None else by_label
    each = [
        _interval(row, _shares(row.shape[0], weight), units, confidence, of_row)
        for row, of_row in zip(
            losses.reshape(-1, losses.shape[-1]),
            possible.reshape(-1, *possible.shape[-2:]),
            strict=True,
        )
    ]
    low, high = np.array(each).T.reshape(2, *losses.shape[:-1])
    if metric in _LARGEST:
        low, high = np.maximum(low, 0.0), np.minimum(high, _LARGEST[metric])
    return low[()], high[()]


def _interval(
    losses: Vector,
    share: Vector,
    units: NDArray[np.int64] | None,
    confidence: float,
    possible: Matrix,
) -> tuple[float, float]:
    kept = share > 0
    losses, share, possible = losses[kept], share[kept], possible[kept]
    units = np.arange(len(losses)) if units is None else _numbered(units[kept])
    # Beside a unit with nearly all the weight the others do not show how far it may be off.
    if units.max() == 0 or np.bincount(units, share).max() > _NEARLY_ALL:
        return np.nan, np.nan
    mean = float(losses @ share)
    deviation = losses - mean
    spread = float(share @ deviation**2) ** 0.5
    n_items = effective_items(losses, share, units)
    low = high = mean
    if spread > 1e-12 * abs(mean):
        error, freedom = error_of_mean(losses, share, units)
        skewness = float(share @ deviation**3) / spread**3 / n_items**0.5
        low, high = skewed_interval(mean, error, freedom, skewness, confidence)
    unseen = float(stdtrit(float(units.max()), (1 + confidence) / 2)) ** 2
    unseen /= n_items + unseen
    least, most = (float(share @ side(possible, axis=1)) for side in (np.min, np.max))
    return min(low, mean - unseen * (mean - least)), max(high, mean + unseen * (most - mean))


def skewed_interval(
    mean: float, error: float, freedom: float, skewness: float, confidence: float = 0.95
) -> tuple[float, float]:
    """Return both ends of the interval of a mean whose estimate has this skewness."""
    quantile = float(stdtrit(max(freedom, 1.0), (1 + confidence) / 2))
    skewness *= (2 * quantile**2 + 1) / (3 * quantile**2)
    shift = quantile**2 * skewness / 2
    half = quantile * (1 + (quantile * skewness) ** 2 / 4) ** 0.5
    return mean + (shift - half) * error, mean + (shift + half) * error


def _error_of_units(
    residual: Vector, share: Vector, units: NDArray[np.int64], n_items: float
) -> tuple[float, float]:
    """Return the standard error from the units' residuals, and its degrees of freedom."""
    mass, apart = np.bincount(units, share), np.bincount(units, share**2)
    most = float(mass @ mass / apart.sum()) - 1  # excess of the design effect of equal items
    alike = (1 / (n_items * apart.sum()) - 1) / most if most > 1e-9 else 0.0
    variance = (1 - alike) * apart + alike * mass**2
    total = float(variance.sum())
    # What is expected of a squared residual, and what makes it the variance of the unit.
    ratio = variance / (variance - 2 * mass * variance + mass**2 * total)
    mm, vv, mv = (float(ratio @ x) for x in (mass**2, variance**2, mass * variance))
    own = variance**2 + 2 * variance * (total * mass**2 - 2 * mass * variance)
    squares = (
        float(ratio**2 @ own) + 2 * mm * vv + 2 * mv**2 + (total * mm) ** 2 - 4 * total * mm * mv
    )
    return float(ratio @ residual**2) ** 0.5, total**2 / squares


def error_of_mean(
    losses: Vector, weight: Vector | None = None, units: NDArray[np.int64] | None = None
) -> tuple[float, float]:
    """Return the standard error of a mean, and its degrees of freedom for Student's quantile.

    Without weights and units these are that of :func:`mean_and_error` and n - 1.

    Examples
    --------
    >>> error, freedom = error_of_mean(np.array([1.0, 2.0, 3.0, 5.0]))
    >>> round(error, 4), round(freedom, 4)
    (0.8539, 3.0)
    """
    share = _shares(len(losses), weight)
    kept = share > 0
    losses, share = losses[kept], share[kept]
    places = np.arange(len(losses)) if units is None else _numbered(units[kept])
    if np.bincount(places, share).max() > _NEARLY_ALL:
        return float(mean_and_error(losses, share, places)[1]), 1.0
    residual = np.bincount(places, share * (losses - losses @ share)).astype(np.float64)
    n_items = effective_items(losses, share, places)
    return _error_of_units(residual, share, places, n_items)


def _numbered(units: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(units, return_inverse=True)[1]


def kish_number(weight: Vector, units: NDArray[np.int64] | None = None) -> float:
    """Return how many equal items, or equal units, weighted ones are worth (Kish).

    Examples
    --------
    >>> kish_number(np.array([1.0, 1.0, 1.0, 1.0])), kish_number(np.array([2.0, 1.0]))
    (4.0, 1.8)
    >>> kish_number(np.array([2.0, 1.0, 1.0]), np.array([0, 1, 1]))
    2.0
    """
    mass = weight if units is None else np.bincount(_numbered(units), weight)
    return float(mass.sum() ** 2 / max(float(mass @ mass), _LEAST_WEIGHT))


def effective_items(
    losses: Vector, weight: Vector | None, units: NDArray[np.int64] | None
) -> float:
    """Return how many independent items the losses are worth: between the groups and the items."""
    share = _shares(len(losses), weight)
    n_items = kish_number(share)
    if units is None:
        return n_items
    n_units = kish_number(share, units)
    alone, together = (mean_and_error(losses, weight, u)[1] for u in (None, units))
    if not (alone > 0 and together > 0):  # equal losses do not show how far groups differ
        return n_units
    return n_items / float(np.clip((together / alone) ** 2, 1, n_items / n_units))


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
