"""A monotone step-and-ramp map of one score, from the exact-tie isotonic fit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hetcal._typing import Vector
from hetcal.kernels.isotonic import isotonic_fit


class IsotonicMap(NamedTuple):
    """Levels at increasing thresholds; linear between them, constant outside."""

    thresholds: Vector
    levels: Vector


def fit_isotonic_map(
    score: Vector, target: Vector, weight: Vector, *, pseudo_errors: float = 0.0
) -> IsotonicMap:
    """Fit a non-decreasing map of ``score`` to the frequency of ``target``.

    ``pseudo_errors`` is the weight of one imagined positive at the lowest score and one imagined
    negative at the highest: without them the ends of the map are usually exactly 0 and 1, and one
    new item on the wrong side costs an infinite log loss.

    Examples
    --------
    >>> import numpy as np
    >>> score, target = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.0, 1.0, 1.0])
    >>> fit_isotonic_map(score, target, np.ones(4), pseudo_errors=0.5)
    IsotonicMap(thresholds=array([1., 2., 3., 4.]), levels=array([0.2, 0.2, 0.8, 0.8]))
    """
    if pseudo_errors > 0:
        used = score[weight > 0]
        score = np.append(score, [used.min(), used.max()])
        target = np.append(target, [1.0, 0.0])
        weight = np.append(weight, [pseudo_errors, pseudo_errors])
    thresholds, levels = isotonic_fit(score, target, weight)
    # Inside a block the level is constant: its two ends say it all.
    steps = np.diff(levels) != 0
    ends = np.append(True, steps) | np.append(steps, True)
    return IsotonicMap(thresholds[ends], levels[ends])


def apply_isotonic_map(fitted: IsotonicMap, score: Vector) -> Vector:
    """Return the level of each score.

    ``numpy.interp`` divides by the distance of two thresholds first, which overflows where
    saturated probabilities lie 1e-310 apart; here the quotient of two distances is formed.
    """
    thresholds, levels = fitted
    if thresholds.shape[0] == 1:
        return np.full(score.shape, levels[0])
    above = np.clip(np.searchsorted(thresholds, score, side="right"), 1, thresholds.shape[0] - 1)
    low, high = thresholds[above - 1], thresholds[above]
    position = np.clip((score - low) / (high - low), 0.0, 1.0)
    return levels[above - 1] + position * (levels[above] - levels[above - 1])
