"""Newton's method for the small convex problems of parametric calibration maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hetcal._typing import Matrix, Vector

# Relative accuracy of the objective at which the search ends; Newton's last step squares the error.
_TOLERANCE = 1e-13
_ARMIJO = 1e-4
_SHORTEST_STEP = 2.0**-50


class Expansion(NamedTuple):
    """Value, gradient and Hessian of an objective at one point."""

    value: float
    gradient: Vector
    hessian: Matrix


class Minimum(NamedTuple):
    """Where the search ended, and whether it is a minimum."""

    point: Vector
    converged: bool


def minimize_convex(
    expand: Callable[[Vector], Expansion],
    start: Vector,
    *,
    lower: Vector | None = None,
    upper: Vector | None = None,
    max_iter: int = 200,
) -> Minimum:
    """Minimise a smooth convex function within bounds, by projected Newton steps.

    Variables at a bound with a gradient that pushes outwards are held; the others take a Newton
    step, shortened until the objective falls enough.

    Parameters
    ----------
    expand : callable
        The objective with gradient and Hessian at a point.
    start : ndarray of shape (d,)
        Where to begin.
    lower, upper : ndarray of shape (d,), optional
        Bounds; infinite for a free variable.
    max_iter : int, default=200
        Steps after which the search gives up.

    Examples
    --------
    >>> import numpy as np
    >>> def expand(x):
    ...     away = x - np.array([3.0, -1.0])
    ...     return Expansion(float(away @ away), 2 * away, 2 * np.eye(2))
    >>> minimize_convex(expand, np.zeros(2), lower=np.zeros(2))
    Minimum(point=array([3., 0.]), converged=True)
    """
    low = np.full(start.shape, -np.inf) if lower is None else lower
    high = np.full(start.shape, np.inf) if upper is None else upper
    point = np.clip(start, low, high)
    here = expand(point)
    for _ in range(max_iter):
        outwards = ((point <= low) & (here.gradient > 0)) | ((point >= high) & (here.gradient < 0))
        free = ~outwards
        step = np.zeros_like(point)
        step[free] = -_solve(here.hessian[np.ix_(free, free)], here.gradient[free])
        accuracy = _TOLERANCE * (1.0 + abs(here.value))
        close = -float(here.gradient @ step) <= accuracy
        length = 1.0
        while True:
            trial = np.clip(point + length * step, low, high)
            there = expand(trial)
            promised = _ARMIJO * float(here.gradient @ (trial - point))
            if there.value <= here.value + promised + accuracy:
                break
            length /= 2
            if length < _SHORTEST_STEP:
                return Minimum(point, False)
        point, here = trial, there
        if close:
            return Minimum(point, True)
    return Minimum(point, False)


def _solve(hessian: Matrix, gradient: Vector) -> Vector:
    """Solve the Newton system; flat directions are damped instead of followed to infinity."""
    if gradient.shape[0] == 0:
        return gradient
    scale = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    scaled = hessian / np.outer(scale, scale)
    scaled[np.diag_indices_from(scaled)] = 1.0 + 1e-12
    try:
        return np.linalg.solve(scaled, gradient / scale) / scale
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(scaled, gradient / scale, rcond=None)[0] / scale
