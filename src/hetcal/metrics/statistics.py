"""Metrics as functions of how often each item occurs, which makes a bootstrap one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hetcal._typing import Matrix, Vector
from hetcal.data import CalibrationSet

# It takes counts of shape (n, B), one column per resample, and gives B values. A column of ones
# gives the metric itself; nothing is checked, sorted or binned again for a resample.
Statistic = Callable[[Matrix], Vector]


def value_of(statistic: Statistic, items: CalibrationSet) -> float:
    """Return a statistic of the items themselves, each occurring once."""
    return float(statistic(np.ones((items.n_items, 1)))[0])


def weighted_mean(losses: Vector, items: CalibrationSet) -> Statistic:
    """Return the statistic that averages one loss per item."""
    weight = items.weights
    weighted = weight * losses
    return lambda counts: (weighted @ counts) / (weight @ counts)


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
