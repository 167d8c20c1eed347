r"""How much better predictions get, with an interval for what a fitted recipe gains on new items.

The gain of a recipe that was fitted to :math:`n` items is
:math:`G = E[\ell(y, p(x)) - \ell(y, \hat q(x))]` over new items :math:`(x, y)` of the same law,
with the fit :math:`\hat q` held fixed. It is estimated by the mean of
:math:`d_i = \ell(y_i, p_i) - \ell(y_i, \hat q_{-i}(x_i))`, where :math:`\hat q_{-i}` has not seen
the label of item i. Two things move that mean away from G:

- The items are a sample: the usual standard error of the mean of :math:`d_i`, by group where rows
  belong together. It is too short where the labels happen to bear out wrong probabilities. Behind
  an overconfident classifier a few items say how wrong it is, those that it is sure of and wrong
  about; a sample with too few of them has a small gain *and* a small spread of :math:`d_i`. So the
  spread counts at least as much as that of labels drawn from :math:`\hat q_{-i}`, and the interval
  has the skewness of these (:func:`~hetcal.metrics.standard_errors.interval_of_mean` says how).
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

from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from hetcal._typing import Matrix, Vector
from hetcal.data import CalibrationSet
from hetcal.metrics.scores import losses_by_label
from hetcal.metrics.standard_errors import effective_items, error_of_mean, skewed_interval

Z95 = 1.96
# What fitting a direction costs, times n. None: the mean loss. No map is fitted to the accuracy.
_COSTS: dict[str, float | None] = {"brier": None, "log_loss": 0.5, "accuracy": 0.0}


@dataclass(frozen=True)
class Gain:
    """What a fitted recipe gains in Brier score on new items, with its 95 % interval.

    What gains anything gains the whole Brier score at most, and its interval ends there. (Where
    nothing was gained, the items may have too few errors to show how large the score is.) ``error``
    is the standard error before that, where it was measured.
    """

    value: float
    low: float
    high: float
    error: float | None = field(default=None, repr=False, compare=False)

    @classmethod
    def between(cls, before: Matrix, after: Matrix, items: CalibrationSet) -> Gain:
        """Return how much probabilities improve on others; paired, by group where there are.

        Each item is predicted without its label.
        """
        losses = losses_by_label(before), losses_by_label(after)
        found = _Estimate.of(*losses, after, items, "brier")
        low, high = skewed_interval(found.value, found.error, found.freedom, found.skewness)
        most = found.before if found.value > 0 else np.inf
        return cls(found.value, low, float(min(high, most)), float(high - low) / (2 * Z95))

    @property
    def standard_error(self) -> float:
        """Of sampling and of the fit; a little more for few groups."""
        return (self.high - self.low) / (2 * Z95) if self.error is None else self.error

    def less(self, errors: float) -> float:
        """Return the gain less some standard errors."""
        return self.value - errors * self.standard_error

    @property
    def p_value(self) -> float:
        """One-sided: that nothing is gained."""
        error = self.standard_error
        return float(ndtr(-self.value / error)) if error > 0 else 1.0


def gain_and_error(
    worse: Matrix, better: Matrix, after: Matrix, items: CalibrationSet, *, metric: str = "brier"
) -> tuple[float, float]:
    """Return the mean of ``worse - better``, and its standard error as an estimate of the gain.

    Parameters
    ----------
    worse, better : ndarray of shape (n, K)
        Losses of the same items, each predicted without its label, with each label that an item
        might have.
    after : ndarray of shape (n, K)
        The probabilities whose losses ``better`` are.
    items : CalibrationSet
        Labels, weights and groups.
    metric : {"brier", "log_loss", "accuracy"}, default="brier"

    Examples
    --------
    >>> items = CalibrationSet.to_score([0, 1, 1, 0], [0.5, 0.5, 0.5, 0.5])
    >>> after = np.array([[0.6, 0.4], [0.4, 0.6], [0.4, 0.6], [0.6, 0.4]])
    >>> losses = [losses_by_label(Q) for Q in (items.proba, after)]
    >>> gain, error = gain_and_error(*losses, after, items)
    >>> round(gain, 3), round(error, 3)
    (0.18, 0.335)
    >>> gain_and_error(losses[0], losses[0], items.proba, items)
    (0.0, 0.0)
    """
    found = _Estimate.of(worse, better, after, items, metric)
    return found.value, found.error


@dataclass(frozen=True)
class _Estimate:
    value: float
    before: float
    error: float
    freedom: float
    skewness: float

    @classmethod
    def of(
        cls, worse: Matrix, better: Matrix, after: Matrix, items: CalibrationSet, metric: str
    ) -> _Estimate:
        rows, weight, units = np.arange(items.n_items), items.weight, items.groups
        before, now = (losses[rows, items.codes] for losses in (worse, better))
        gain, whole = (float(np.average(x, weights=weight)) for x in (before - now, before))
        of_items, freedom = error_of_mean(before - now, weight, units)
        if np.array_equal(worse, better):  # nothing was changed, and nothing is gained on any item
            return cls(gain, whole, float(of_items), freedom, 0.0)
        n_items = effective_items(before - now, weight, units)
        spread, skewness = _of_drawn_labels(worse - better, after, items.weights)
        of_items = float(np.maximum(of_items, spread / n_items**0.5))
        cost = _COSTS[metric]
        if cost is None:
            cost = min(np.average(losses, weights=weight) for losses in (before, now))
        directions = 2 * (items.n_classes - 1)
        of_fit = (8 * directions) ** 0.5 * float(cost) / effective_items(now, weight, units)
        error = float(np.hypot(of_items, of_fit))
        if error > 0:
            skewness *= of_items / error / n_items**0.5
        return cls(gain, whole, error, freedom, skewness)


def _of_drawn_labels(gains: Matrix, proba: Matrix, weight: Vector) -> tuple[float, float]:
    """Return standard deviation and skewness of the gain of an item, its label drawn."""
    share = weight[:, None] * proba
    share = share / share.sum()
    deviation = gains - np.vdot(share, gains)
    spread = float(np.vdot(share, deviation**2)) ** 0.5
    third = float(np.vdot(share, deviation**3))
    return spread, third / spread**3 if spread > 0 else 0.0
