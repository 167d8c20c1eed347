r"""How much better predictions get, with an interval for what a fitted recipe gains on new items.

The gain of a recipe that was fitted to :math:`n` items is
:math:`G = E[\ell(y, p(x)) - \ell(y, \hat q(x))]` over new items :math:`(x, y)` of the same law,
with the fit :math:`\hat q` held fixed. It is estimated by the mean of
:math:`d_i = \ell(y_i, p_i) - \ell(y_i, \hat q_{-i}(x_i))`, where :math:`\hat q_{-i}` has not seen
the label of item i. Two things move that mean away from G:

- The items are a sample: the usual standard error of the mean of :math:`d_i`, by group where rows
  belong together.
- The recipe is estimated too. Take one fitted direction along which nothing can be gained, its
  coefficient :math:`\hat\theta` of variance :math:`\sigma^2` around 0. The stated gain is about
  :math:`c (\hat\theta^2 - 2 \sigma^2)`, the true one :math:`- c \hat\theta^2`: they differ by
  :math:`2 c (\hat\theta^2 - \sigma^2)`, which has mean 0 and standard deviation
  :math:`\sqrt 8\, c \sigma^2`. The spread of :math:`d_i` does not show it, least of all where
  :math:`\hat\theta` happens to be near 0. For the Brier score :math:`c \sigma^2`, the expected cost
  of fitting a direction, is about the score itself over n; for the log loss it is 1 / 2n. A map of
  p has a shift and a slope for each class but the first, which are :math:`m = 2 (K - 1)`
  directions, and the standard deviation grows to :math:`\sqrt{8 m}\, c \sigma^2`.

The two are added as variances. How often the interval holds G is measured in
``benchmarks/coverage_of_levels.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from hetcal._typing import Vector
from hetcal.data import CalibrationSet
from hetcal.metrics.standard_errors import effective_items, error_of_mean

Z95 = 1.96
# What fitting a direction costs, times n. None: the mean loss. No map is fitted to the accuracy.
_COSTS: dict[str, float | None] = {"brier": None, "log_loss": 0.5, "accuracy": 0.0}


@dataclass(frozen=True)
class Gain:
    """What a fitted recipe gains in Brier score on new items, with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def between(cls, worse: Vector, better: Vector, items: CalibrationSet) -> Gain:
        """Return how much ``better`` improves on ``worse``; paired, by group where there are."""
        gain, error = gain_and_error(
            worse, better, items.weight, items.groups, n_classes=items.n_classes
        )
        _, freedom = error_of_mean(worse - better, items.weight, items.groups)
        half = error * float(stdtrit(max(freedom, 1.0), 0.975))
        return cls(gain, gain - half, gain + half)

    @property
    def standard_error(self) -> float:
        """Of sampling and of the fit; a little more for few groups."""
        return (self.high - self.low) / (2 * Z95)

    def less(self, errors: float) -> float:
        """Return the gain less some standard errors."""
        return self.value - errors * self.standard_error


def gain_and_error(
    worse: Vector,
    better: Vector,
    weight: Vector | None = None,
    units: NDArray[np.int64] | None = None,
    *,
    n_classes: int = 2,
    metric: str = "brier",
) -> tuple[float, float]:
    """Return the mean of ``worse - better``, and its standard error as an estimate of the gain.

    Parameters
    ----------
    worse, better : ndarray of shape (n,)
        Losses of the same items, each predicted without its label.
    weight : ndarray of shape (n,), optional
    units : ndarray of shape (n,), optional
        Group numbers 0..G-1; items of one group are not independent.
    n_classes : int, default=2
    metric : {"brier", "log_loss", "accuracy"}, default="brier"

    Examples
    --------
    >>> before = np.array([0.3, 0.5, 0.2, 0.6])
    >>> gain, error = gain_and_error(before, before - 0.1)
    >>> round(gain, 3), round(error, 3)
    (0.1, 0.3)
    >>> gain_and_error(before, before)
    (0.0, 0.0)
    """
    gain = np.average(worse - better, weights=weight)
    of_items, _ = error_of_mean(worse - better, weight, units)
    if np.array_equal(worse, better):  # nothing was changed, and nothing is gained on any item
        return float(gain), float(of_items)
    cost = _COSTS[metric]
    if cost is None:
        cost = min(np.average(worse, weights=weight), np.average(better, weights=weight))
    directions = 2 * (n_classes - 1)
    of_fit = (8 * directions) ** 0.5 * float(cost) / effective_items(better, weight, units)
    return float(gain), float(np.hypot(of_items, of_fit))
