"""The interval of each kind of metric, and of its difference between two methods.

A metric is given by rows of values: ``own``, of the items, has shape (R, 1), and ``drawn``, of
resamples, (R, B). The first row is the metric itself; what the others are depends on the kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetcal._typing import Matrix, Vector
from hetcal.data import CalibrationSet
from hetcal.metrics.bootstrap import Interval, interval_of, interval_of_error, may_be_noise
from hetcal.metrics.decomposition import interval_of_part
from hetcal.metrics.standard_errors import interval_of_mean

Pair = tuple[Matrix, Matrix]  # of a method, and of the one that it is compared with


def interval_of_loss(
    value: float,
    losses: Vector,
    by_label: Matrix,
    items: CalibrationSet,
    drawn: Matrix,
    confidence: float,
    metric: str | None = None,
) -> Interval:
    """Return a mean over items, or a mean difference of two losses, with its interval.

    It needs no resamples; where none were asked for, no bounds were.
    """
    if drawn.shape[1] == 0:
        return Interval(value, np.nan, np.nan)
    ends = interval_of_mean(
        losses,
        items.weight,
        items.groups,
        confidence=confidence,
        metric=metric,
        by_label=by_label,
    )
    return Interval(value, *map(float, ends))


@dataclass(frozen=True)
class BrierPart:
    """A part of the Brier score, with the cross-fitted map and with that of the items."""

    name: str

    def interval(self, own: Matrix, drawn: Matrix, confidence: float) -> Interval:
        """Return an interval that reaches from the one map to the other."""
        return interval_of_part(self.name, float(own[0, 0]), drawn, confidence)

    def difference(self, own: Pair, drawn: Pair, confidence: float) -> Interval:
        """Return percentiles of the paired differences, over both maps."""
        value = float(own[0][0, 0] - own[1][0, 0])
        rows = drawn[0] - drawn[1]
        each = [interval_of(value, row, confidence, "percentile") for row in rows]
        return Interval(value, min(one.low for one in each), max(one.high for one in each))


@dataclass(frozen=True)
class CalibrationError:
    """The parts of an :class:`~hetcal.metrics.statistics.ErrorStatistic`."""

    debiased: bool = False

    def interval(self, own: Matrix, drawn: Matrix, confidence: float) -> Interval:
        """Return an interval of the error less its bias."""
        return interval_of_error(own[:, 0], drawn, confidence, debiased=self.debiased)

    def difference(self, own: Pair, drawn: Pair, confidence: float) -> Interval:
        """Return the same; an error counts as 0 too where noise may have made all of it."""
        values, rows = (own[0] - own[1])[:, 0], drawn[0] - drawn[1]
        value = float(values[int(self.debiased)])
        _, low, high = interval_of(float(values[2]), rows[2], confidence, "centred")
        if np.isnan(low) or not rows.any():  # the same probabilities differ by exactly nothing
            return Interval(value, low, high)
        if may_be_noise(own[0][:, 0], drawn[0], confidence):
            low -= float(own[0][2, 0])
        if may_be_noise(own[1][:, 0], drawn[1], confidence):
            high += float(own[1][2, 0])
        return Interval(value, min(low, value), max(high, value))
