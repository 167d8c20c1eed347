"""Metrics as functions of how often each item occurs, which makes a bootstrap one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetcal._typing import Matrix, Vector
from hetcal.data import CalibrationSet

# It takes counts of shape (n, B), one column per resample, and gives B values. A column of ones
# gives the metric itself; nothing is checked, sorted or binned again for a resample.
Statistic = Callable[[Matrix], Vector]


@dataclass(frozen=True, eq=False)
class ErrorStatistic:
    """A calibration error as a function of item counts, with what its interval needs.

    Attributes
    ----------
    parts : callable
        From counts (n, B) to four rows: the error; the same less its bias, rows being independent;
        less its bias, rows of a group belonging together; and the noise, the error that the
        difference between the residuals of a resample and those of the items would have. The error
        differs from that of the law by no more than noise.
    debiased : bool
        Whether the value is the second of them.
    """

    parts: Callable[[Matrix], Matrix]
    debiased: bool = False

    def __call__(self, counts: Matrix) -> Vector:
        """Return the error of each resample."""
        return self.parts(counts)[int(self.debiased)]


def value_of(statistic: Statistic, items: CalibrationSet) -> float:
    """Return a statistic of the items themselves, each occurring once."""
    return float(statistic(np.ones((items.n_items, 1)))[0])


@dataclass(frozen=True, eq=False)
class WeightedMean:
    """The mean of one loss per item as a function of item counts."""

    losses: Vector
    items: CalibrationSet
    by_label: Matrix  # what each item may lose, (n, K)

    def __call__(self, counts: Matrix) -> Vector:
        """Return the mean of each resample."""
        weight = self.items.weights
        return ((weight * self.losses) @ counts) / (weight @ counts)


def checked_value(
    statistic: Callable[..., Statistic],
    y: Any,
    y_proba: Any,
    classes: Any,
    sample_weight: Any,
    normalized: bool,
    **options: Any,
) -> float:
    """Check what a metric was called with and return its value."""
    items = CalibrationSet.to_score(
        y, y_proba, classes=classes, sample_weight=sample_weight, normalized=normalized
    )
    return value_of(statistic(items, **options), items)
