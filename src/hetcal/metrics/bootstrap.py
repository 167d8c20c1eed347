"""Bootstrap intervals: many resamples at once, whole groups where rows belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation import check_choice
from hetcal.data import CalibrationSet
from hetcal.metrics import ece, scores, smooth
from hetcal.metrics.statistics import ErrorStatistic, Statistic, value_of

INTERVALS = ("auto", "percentile", "centred")
# Resamples are worked off in blocks of this many counts (32 MB), whatever their number.
_BLOCK = 4_000_000

_STATISTICS: dict[Callable[..., float], Callable[..., Statistic]] = {
    scores.brier_score: scores.brier_statistic,
    scores.log_loss: scores.log_loss_statistic,
    scores.accuracy: scores.accuracy_statistic,
    scores.expected_cost: scores.expected_cost_statistic,
    ece.expected_calibration_error: ece.ece_statistic,
    smooth.smooth_calibration_error: smooth.smooth_statistic,
}


class Interval(NamedTuple):
    """A value with the bounds of its interval."""

    value: float
    low: float
    high: float


def bootstrap_interval(
    metric: Callable[..., float],
    y: Any,
    y_proba: Any,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    interval: str = "auto",
    random_state: int | None = 0,
    normalized: bool = True,
    **options: Any,
) -> Interval:
    """Return a metric with its bootstrap interval.

    Rows, or whole groups of rows, are drawn with replacement as many times as there are of them;
    the interval spans the middle ``confidence`` of the metric's values over ``n_bootstrap`` draws.

    Parameters
    ----------
    metric : callable
        A metric of this module, which is computed for all resamples at once, or any function
        ``metric(y, y_proba, **options) -> float``, which is called once per resample with the rows
        drawn (labels and a matrix with one column per class; and ``sample_weight`` where given).
    y, y_proba, classes, sample_weight, normalized
        As in :func:`brier_score`.
    groups : array-like of shape (n,) or (n, n_columns), optional
        Rows of one group (one patient, one document) are drawn together. Needed whenever rows are
        not independent: without it the interval is too narrow.
    n_bootstrap : int, default=1000
        Number of resamples; below 200 the bounds themselves are noisy.
    confidence : float, default=0.95
        Coverage aimed at.
    interval : {"auto", "percentile", "centred"}, default="auto"
        ``"percentile"``: quantiles of the resampled values. ``"centred"``: the same, shifted so
        that their mean is the value. ``"auto"`` takes percentiles, except of hetcal's *calibration
        errors*: noise alone makes these positive, and resampling adds more of it. Their interval
        is that of the error less its bias; it begins at 0 where noise may have made all of the
        error (as much noise as 97.5 % of the resamples have, for 95 %), and it reaches up to the
        value, which may lie above what is true.
    random_state : int or None, default=0
        Seed of the draws.
    **options
        Passed on to the metric, e.g. ``cost_matrix=`` or ``n_bins=``.

    Returns
    -------
    Interval
        ``(value, low, high)``.

    Examples
    --------
    >>> from hetcal.metrics import accuracy, expected_calibration_error
    >>> y, y_proba = [0, 1, 1, 1, 0, 1] * 20, [0.1, 0.8, 0.9, 0.4, 0.6, 0.7] * 20
    >>> value, low, high = bootstrap_interval(accuracy, y, y_proba)
    >>> round(value, 2), low < value < high
    (0.67, True)
    >>> low, high = bootstrap_interval(expected_calibration_error, y, y_proba, n_bins=5)[1:]
    >>> 0 <= low < high
    True
    """
    check_choice(interval, "interval", INTERVALS, "bootstrap_interval")
    check_confidence(confidence)
    items = CalibrationSet.to_score(
        y,
        y_proba,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        normalized=normalized,
    )
    if metric in _STATISTICS:
        statistic = _STATISTICS[metric](items, **options)
    else:
        statistic = _row_by_row(metric, items, sample_weight is not None, options)
    blocks = resample_counts(items.units, n_bootstrap, random_state)
    if interval == "auto" and isinstance(statistic, ErrorStatistic):
        own = statistic.parts(np.ones((items.n_items, 1)))[:, 0]
        drawn = np.hstack([np.empty((4, 0)), *map(statistic.parts, blocks)])
        return interval_of_error(own, drawn, confidence, debiased=statistic.debiased)
    replicates = np.concatenate([np.empty(0), *map(statistic, blocks)])
    floor = 0.0 if isinstance(statistic, ErrorStatistic) else -np.inf
    return interval_of(value_of(statistic, items), replicates, confidence, interval, floor=floor)


def interval_of(
    value: float, replicates: Vector, confidence: float, interval: str, *, floor: float = -np.inf
) -> Interval:
    """Return the interval that resampled values give to a value.

    ``"both ways"`` turns them round at the value too: what resampling takes off a largest possible
    value, sampling has taken off as well.
    """
    if replicates.shape[0] == 0:
        return Interval(value, np.nan, np.nan)
    if interval == "centred":
        replicates = np.maximum(replicates - (replicates.mean() - value), floor)
    elif interval == "both ways":
        replicates = np.concatenate([replicates, 2 * value - replicates])
    tail = (1 - confidence) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return Interval(value, float(low), float(high))


def interval_of_error(
    own: Vector, drawn: Matrix, confidence: float, *, debiased: bool = False
) -> Interval:
    """Return a calibration error with an interval of the error of the law.

    Parameters
    ----------
    own : ndarray of shape (4,)
        The parts of an :class:`~hetcal.metrics.statistics.ErrorStatistic` for the items.
    drawn : ndarray of shape (4, B)
        The same for resamples.
    confidence : float
    debiased : bool
        Whether the value is the second part.
    """
    value = float(own[int(debiased)])
    _, low, high = interval_of(float(own[2]), drawn[2], confidence, "centred", floor=0.0)
    if np.isnan(low):
        return Interval(value, low, high)
    if may_be_noise(own, drawn, confidence):
        low = 0.0
    return Interval(value, min(low, value), max(high, value))


def may_be_noise(own: Vector, drawn: Matrix, confidence: float) -> bool:
    """Return whether a calibration error is no larger than noise alone makes it."""
    return bool(own[0] <= np.quantile(drawn[3], (1 + confidence) / 2))


def resample_counts(units: Rows, n_bootstrap: int, random_state: int | None) -> Iterator[Matrix]:
    """Yield how often each item occurs in each resample, in blocks of shape (n, B).

    Blocks together hold ``n_bootstrap`` columns; a column draws as many units as there are. A
    single unit cannot be resampled, and yields nothing.
    """
    n_units = int(units.max()) + 1
    if not isinstance(n_bootstrap, Integral) or n_bootstrap < 0:
        raise ValueError(f"n_bootstrap must be an integer of at least 0; got {n_bootstrap!r}.")
    if n_units < 2:
        return
    one_per_item = n_units == units.shape[0]
    rng = np.random.default_rng(random_state)
    width = max(1, _BLOCK // units.shape[0])
    for start in range(0, int(n_bootstrap), width):
        size = min(width, int(n_bootstrap) - start)
        drawn = rng.integers(0, n_units, size=(size, n_units))
        cells = drawn * size + np.arange(size)[:, None]
        counts = np.bincount(cells.ravel(), minlength=n_units * size).reshape(n_units, size)
        yield (counts if one_per_item else counts[units]).astype(np.float64)


def check_confidence(confidence: float) -> None:
    """Raise when the confidence is not a share."""
    if not 0 < confidence < 1:
        raise ValueError(
            f"confidence must lie between 0 and 1, both excluded; got {confidence!r}. "
            "Pass 0.95 for 95 %."
        )


def _row_by_row(
    metric: Callable[..., float], items: CalibrationSet, weighted: bool, options: dict[str, Any]
) -> Statistic:
    """Return the statistic that calls any metric on the rows of each resample."""
    labels, P, weight = items.labels, items.proba, items.weights

    def on_rows(rows: Rows) -> float:
        weights = {"sample_weight": weight[rows]} if weighted else {}
        return float(metric(labels[rows], P[rows], **weights, **options))

    def statistic(counts: Matrix) -> Vector:
        times = counts.astype(np.int64)
        everyone = np.arange(items.n_items)
        return np.array([on_rows(np.repeat(everyone, column)) for column in times.T])

    return statistic
