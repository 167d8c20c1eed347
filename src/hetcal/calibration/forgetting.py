r"""Calibration items lose weight as newer ones come, and are dropped when they are too old.

An item of age a keeps :math:`2^{-a / h}` of its weight at a half-life h. Ages count rows, or the
time between items where it is known. When items are added, those that were there before lose
weight for what has passed since the newest of them, so that one large batch and many small ones
come to the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._typing import Rows, Vector
from hetcal._validation.containers import as_vector
from hetcal._validation.dates import are_dates, read_dates

#: What is left of an item after 30 half-lives moves no prediction, but would fill files for ever.
_NEGLIGIBLE = 2.0**-30


class Aged(NamedTuple):
    """Old and new items together: which of them stay, their weights, and their times if known."""

    rows: Rows
    weight: Vector | None
    times: Vector | None


@dataclass(frozen=True)
class Forgetting:
    """How fast calibration items are forgotten; None: not at all.

    Attributes
    ----------
    half_life : float or None
        After how many rows, or how much time, an item has lost half of its weight.
    window : float or None
        How many of the newest rows stay, or items of how much time.
    """

    half_life: float | None = None
    window: float | None = None

    @classmethod
    def check(cls, half_life: Any, window: Any, times: Any) -> Forgetting:
        """Return what was asked for as numbers (durations as seconds), or say what is wrong.

        Parameters
        ----------
        half_life, window : number, duration, text of either, or None
        times : array-like of shape (n,) or None
            When the new items were seen: dates ask for durations, and numbers, whose unit is not
            known, for numbers. None: rows are counted.
        """
        dates = times is not None and are_dates(pd.Series(as_vector(times, "times")))
        if times is None:
            expected = "a number of rows above 0 (a duration needs the times of the rows)"
        elif dates:
            expected = (
                "a duration with its unit (days, hours, minutes or seconds; years and months are "
                "not all of one length), such as '30 days', since the times are dates"
            )
        else:
            expected = "a number above 0 in the unit of the times, since these are numbers"
        read = _as_seconds if dates else _as_number
        spans = {"half-life": half_life, "window": window}
        for name, span in spans.items():
            if span is not None and not 0 < read(span) < np.inf:
                raise ValueError(f"The {name} must be {expected}; got {span!r}.")
        return cls(*(None if span is None else read(span) for span in spans.values()))

    def join(self, old: Aged, new: Aged) -> Aged:
        """Return old items followed by new ones, the old as of the moment of the newest.

        ``rows`` of the result count through both.
        """
        n_old, n_new = len(old.rows), len(new.rows)
        times = _joined_times(old, new)
        weight = _joined_weights(old, new)
        stay = np.ones(n_old + n_new, dtype=bool)
        if self.half_life is not None:
            decay = np.exp2(-_ages_since_weighted(old, new, times) / self.half_life)
            weight = decay if weight is None else weight * decay
            stay &= weight > _NEGLIGIBLE * weight.max()
        if self.window is not None:
            stay &= _ages(n_old + n_new, times) < self.window
        return Aged(
            np.flatnonzero(stay),
            None if weight is None else weight[stay],
            None if times is None else times[stay],
        )


def items_to_age(n_items: int, weight: Vector | None, times: Vector | None) -> Aged:
    """Return items of which all are there."""
    return Aged(np.arange(n_items), weight, times)


def check_classes_left(labels: NDArray, aged: Aged) -> None:
    """Raise where forgetting takes all classes but one; ``labels`` are those of all items."""
    left = labels[aged.rows]
    if len(left) < len(labels) and len(np.unique(left)) < 2:
        raise ValueError(
            f"Forgetting would leave {len(left)} calibration item{'s' if len(left) > 1 else ''} of "
            f"a single class ({left.tolist()[0]!r}). Choose a longer window or half-life."
        )


def check_times(times: Any, n_rows: int, known: Vector | None) -> Vector | None:
    """Return the time of each item as a number: dates as seconds since 1970.

    ``known`` are the times of the items that are there already, None where they have none.
    """
    if times is None:
        if known is not None:
            raise ValueError(
                "extend was given times= before and has none for these items. Pass theirs too."
            )
        return None
    values = as_numbers_or_seconds(times)
    if values.shape[0] != n_rows or not np.isfinite(values).all():
        raise ValueError(
            f"times must hold one date or finite number per row of X ({n_rows}); got "
            f"{values.shape[0]} values, {int(np.isfinite(values).sum())} of them known. Leave rows "
            "without a time out."
        )
    return values


def as_numbers_or_seconds(times: Any) -> Vector:
    """Return numbers as they are, and dates as seconds since 1970; NaN where there is none."""
    values = pd.Series(as_vector(times, "times"))
    if not are_dates(values):
        return np.asarray(pd.to_numeric(values, errors="coerce"), dtype=np.float64)
    since = read_dates(values, "times") - pd.Timestamp(0, tz="UTC")
    return np.asarray(since.dt.total_seconds(), dtype=np.float64)


def _as_number(span: Any) -> float:
    """Return a number, or text of one; NaN for a duration and whatever else it is."""
    try:
        return np.nan if isinstance(span, timedelta | np.timedelta64) else float(span)
    except (TypeError, ValueError):
        return np.nan


def _as_seconds(span: Any) -> float:
    """Return a duration in seconds; NaN for a number without a unit and whatever else it is."""
    if not np.isnan(_as_number(span)):
        return np.nan
    try:
        return float(pd.Timedelta(span).total_seconds())
    except (TypeError, ValueError):
        return np.nan


def _joined_weights(old: Aged, new: Aged) -> Vector | None:
    if old.weight is None and new.weight is None:
        return None
    return np.concatenate(
        [np.ones(len(a.rows)) if a.weight is None else a.weight for a in (old, new)]
    )


def _joined_times(old: Aged, new: Aged) -> Vector | None:
    """Return all times; items without any were there just before the first that has one."""
    if new.times is None:
        return None
    before = np.full(len(old.rows), new.times.min()) if old.times is None else old.times
    return np.concatenate([before, new.times])


def _ages(n_items: int, times: Vector | None) -> Vector:
    """Return how old each item is: newer rows, or time before the newest."""
    if times is None:
        return np.arange(n_items, dtype=np.float64)[::-1]
    return times.max() - times


def _ages_since_weighted(old: Aged, new: Aged, times: Vector | None) -> Vector:
    """Return the ages by which weights fall: those of old items have fallen for theirs before."""
    n_old, ages = len(old.rows), _ages(len(old.rows) + len(new.rows), times)
    passed = float(len(new.rows)) if times is None else float(ages[:n_old].min())
    return np.concatenate([np.full(n_old, passed), ages[n_old:]])
