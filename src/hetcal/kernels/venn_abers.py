r"""Inductive Venn-Abers predictors: isotonic regression with the new item, labelled either way.

Of a new score two isotonic fits are made, to the calibration items and the new one labelled 0, and
labelled 1; what each says at the new score are the two ends of the predictor, :math:`p_0 \le p_1`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hetcal._typing import Matrix, Vector
from hetcal.kernels._backend import native

Corner = tuple[float, float]
_ROUNDING = 1e-10


class VennAbersMap(NamedTuple):
    """Both ends as step functions of the score.

    ``lower[i]`` holds from threshold i - 1 (included) to threshold i (excluded), ``upper[i]`` from
    threshold i - 1 (excluded) to threshold i (included).
    """

    thresholds: Vector
    lower: Vector
    upper: Vector


def fit_venn_abers(score: Vector, target: Vector, weight: Vector) -> VennAbersMap:
    """Fit both ends at once, in the time of a sort.

    The new item is moved along the cumulative sum diagram of the calibration items; one corner of
    its greatest convex minorant changes at every step (Vovk, Petej, Fedorova: Large-scale
    probabilistic predictors with and without guarantees of validity. NeurIPS 2015).

    Examples
    --------
    >>> import numpy as np
    >>> fit_venn_abers(np.array([1.0, 2.0]), np.array([0.0, 1.0]), np.ones(2))
    VennAbersMap(thresholds=array([1., 2.]), lower=array([0. , 0. , 0.5]), upper=array([0.5...1. ]))
    """
    used = weight > 0
    thresholds, group = np.unique(score[used], return_inverse=True)
    mass = np.bincount(group, weights=weight[used]).astype(np.float64)
    hits = np.bincount(group, weights=weight[used] * target[used]).astype(np.float64)
    upper = np.append(_with_a_positive(mass, hits), 1.0)
    # Labelled 0 and read from the right it is the same task.
    lower = 1.0 - np.append(_with_a_positive(mass[::-1], (mass - hits)[::-1]), 1.0)[::-1]
    # On a threshold the upper end is that of the step before.
    lower = np.minimum.reduce([lower, upper, np.append(1.0, upper[:-1])])
    return VennAbersMap(thresholds, lower, upper)


def _with_a_positive(mass: Vector, hits: Vector) -> Vector:
    """Return the isotonic fit at each place if one positive item were added there."""
    x, y = (np.concatenate([[0.0], np.cumsum(values)]) for values in (mass, hits))
    core = native()
    if core is None:
        levels = _with_a_positive_pure(x, y)
    else:
        levels = np.empty(len(mass))
        core.levels_with_one_added(x, y, levels)
    # Differences of sums of unequal weights round, also to nothing.
    return np.nan_to_num(levels, nan=1.0).clip(0.0, 1.0)


def _with_a_positive_pure(x: Vector, y: Vector) -> Vector:
    points = list(zip(x.tolist(), y.tolist(), strict=True))
    before = (-1.0, -1.0)  # the added item stands in front of all others
    corners: list[Corner] = []
    for point in [before, *points][::-1]:
        _push(corners, point)
    levels = np.empty(len(x) - 1)
    for i in range(len(levels)):
        left, right = corners[-1], corners[-2]
        width = right[0] - left[0]
        levels[i] = (right[1] - left[1]) / width if width else np.inf
        # The added item changes places with item i. What lies left of it matters no more as soon
        # as the point between the two is a corner itself.
        here, after = points[i], points[i + 1]
        before = (before[0] + after[0] - here[0], before[1] + after[1] - here[1])
        if _convex(left, before, right):
            corners.pop()
            _push(corners, before)
    return levels


def _push(corners: list[Corner], point: Corner) -> None:
    """Put a point in front of a convex chain, whose first corner is the last of the list."""
    while len(corners) > 1 and not _convex(point, corners[-1], corners[-2]):
        corners.pop()
    corners.append(point)


def _convex(a: Corner, b: Corner, c: Corner) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) < (c[1] - b[1]) * (b[0] - a[0])


def apply_venn_abers(fitted: VennAbersMap, score: Vector) -> tuple[Vector, Vector]:
    """Return the two ends for new scores.

    A score counts as that of a calibration item where only rounding tells them apart: 1 - p has
    another last bit than the p of the other class.
    """
    thresholds, lower, upper = fitted
    return (
        lower[np.searchsorted(thresholds, score + _ROUNDING, side="right")],
        upper[np.searchsorted(thresholds, score - _ROUNDING, side="left")],
    )


def merged(ends: list[tuple[Vector, Vector]]) -> Matrix:
    r"""Return one probability from the ends of one or several predictors.

    :math:`G(p_1) / (G(1 - p_0) + G(p_1))` with geometric means G over the predictors: the value
    with the least largest regret under log loss.

    Examples
    --------
    >>> import numpy as np
    >>> merged([(np.array([0.2]), np.array([0.4]))]).round(4)
    array([0.3333])
    """
    with np.errstate(divide="ignore"):
        yes = np.mean([np.log(upper) for _, upper in ends], axis=0)
        no = np.mean([np.log1p(-lower) for lower, _ in ends], axis=0)
    return 1.0 / (1.0 + np.exp(no - yes))
