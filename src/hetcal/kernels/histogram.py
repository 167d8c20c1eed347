"""Histogram binning: the score axis is cut into bins of equal mass, each gets one probability."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hetcal._typing import Vector


class Histogram(NamedTuple):
    """Bin ``j`` holds scores in ``(edges[j - 1], edges[j]]``; the last bin has no upper edge."""

    edges: Vector
    levels: Vector


def default_bin_number(mass: float) -> int:
    """Return four times the cube root of the number of items, at least one.

    The cube root balances the error within a bin against the noise of its frequency.

    Examples
    --------
    >>> default_bin_number(200), default_bin_number(3000)
    (23, 58)
    """
    return max(1, round(4 * mass ** (1 / 3)))


def fit_histogram(
    score: Vector,
    target: Vector,
    weight: Vector,
    n_bins: int,
    *,
    prior_mass: float = 0.5,
) -> Histogram:
    """Cut the scores into bins of equal mass and take the frequency of the target in each.

    Equal scores always share a bin. Each frequency is drawn towards the overall one by
    ``prior_mass`` pseudo-items, so that no bin says 0 or 1.

    Parameters
    ----------
    score, target, weight : ndarray of shape (n,)
        Score to be mapped, 0/1 outcome, and weight of each item.
    n_bins : int
        Number of bins asked for; ties may leave fewer.
    prior_mass : float, default=0.5
        Pseudo-items per bin.

    Examples
    --------
    >>> import numpy as np
    >>> fit_histogram(np.array([0.1, 0.2, 0.3, 0.8]), np.array([0.0, 0, 1, 1]), np.ones(4), 2)
    Histogram(edges=array([0.25]), levels=array([0.1, 0.9]))
    """
    used = weight > 0
    values, group = np.unique(score[used], return_inverse=True)
    mass = np.bincount(group, weights=weight[used])
    positive = np.bincount(group, weights=weight[used] * target[used])
    total = mass.sum()
    # A value belongs to the bin that holds the middle of its mass.
    middle = (np.cumsum(mass) - mass / 2) / total
    place = np.minimum((middle * n_bins).astype(np.int64), n_bins - 1)
    bins = np.unique(place, return_inverse=True)[1]
    rate = (positive.sum() + 1) / (total + 2)
    levels = (np.bincount(bins, weights=positive) + prior_mass * rate) / (
        np.bincount(bins, weights=mass) + prior_mass
    )
    last = np.flatnonzero(np.diff(bins))
    return Histogram(_between(values[last], values[last + 1]), levels)


def fit_run_histogram(score: Vector, target: Vector, weight: Vector, n_bins: int) -> Histogram:
    """Cut the sorted scores into runs of ``ceil(n / n_bins)``, as in the published experiments.

    An edge lies half-way between two runs, equal edges collapse, and a bin that ends up without
    items gets the middle of its range as level. With weights that are not whole numbers the runs
    have the mass ``n / n_bins`` exactly.

    Examples
    --------
    >>> import numpy as np
    >>> fit_run_histogram(np.array([0.1, 0.2, 0.3, 0.8]), np.array([0.0, 0, 1, 1]), np.ones(4), 2)
    Histogram(edges=array([0.25]), levels=array([0., 1.]))
    """
    used = weight > 0
    order = np.argsort(score[used], kind="stable")
    values = score[used][order]
    cumulative = np.cumsum(weight[used][order])
    total = cumulative[-1]
    length = total / n_bins
    if (weight == np.floor(weight)).all():
        length = np.ceil(length)
    ends = length * np.arange(1, n_bins)
    slack = 1e-9 * total
    before = np.searchsorted(cumulative, ends - slack, side="left")
    after = np.searchsorted(cumulative, ends + slack, side="right")
    inside = after < values.shape[0]
    edges = np.unique((values[before[inside]] + values[after[inside]]) / 2.0)
    edges = edges[edges < 1.0]
    bins = np.searchsorted(edges, score[used], side="left")
    mass = np.bincount(bins, weights=weight[used], minlength=edges.shape[0] + 1)
    positive = np.bincount(bins, weights=weight[used] * target[used], minlength=edges.shape[0] + 1)
    ends_of_bins = np.append(edges, 1.0)
    middle = (np.append(0.0, edges) + ends_of_bins) / 2
    levels = np.where(mass > 0, positive / np.where(mass > 0, mass, 1.0), middle)
    return Histogram(edges, levels)


def apply_histogram(histogram: Histogram, score: Vector) -> Vector:
    """Return the level of the bin of each score."""
    return histogram.levels[np.searchsorted(histogram.edges, score, side="left")]


def _between(low: Vector, high: Vector) -> Vector:
    """Return the middle of two numbers, never rounding up to the higher one."""
    return np.minimum(low / 2 + high / 2, np.nextafter(high, low))
