"""What every metric starts from: checked labels, probabilities and weights of the same items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hetcal._typing import Matrix, Vector
from hetcal._validation import (
    check_columns_match_classes,
    check_labels,
    check_proba,
    check_proba_names,
    check_same_rows,
    check_sample_weight,
)

# A statistic is a metric as a function of how often each item occurs: it takes counts of shape
# (n, B), one column per resample, and gives B values. A column of ones gives the metric itself, so
# a bootstrap is one call with many columns and nothing is checked, sorted or binned again.
Statistic = Callable[[Matrix], Vector]


@dataclass(frozen=True)
class Scored:
    """Items with a known label and a probability vector; items of weight zero are left out.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Column of ``proba`` that belongs to the true class.
    proba : ndarray of shape (n, K)
        Probabilities, columns in the order of ``classes``.
    weight : ndarray of shape (n,)
        Positive weights.
    classes : ndarray of shape (K,)
        Labels of the columns.
    kept : ndarray of shape (n,)
        Rows of the caller's arrays that the items come from.
    n_rows : int
        Rows that the caller's arrays have, items of weight zero included.
    """

    codes: NDArray[np.int64]
    proba: Matrix
    weight: Vector
    classes: NDArray
    kept: NDArray[np.int64]
    n_rows: int

    @property
    def n_items(self) -> int:
        return self.codes.shape[0]

    @property
    def n_classes(self) -> int:
        return self.proba.shape[1]

    @property
    def outcomes(self) -> Matrix:
        """One column per class: 1.0 where it is the true class."""
        return np.eye(self.n_classes)[self.codes]


def check_scored(
    y: Any,
    y_proba: Any,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    normalized: bool = True,
) -> Scored:
    """Check labels, probabilities and weights together."""
    codes, class_order = check_labels(y, classes)
    P = check_proba(y_proba, normalized=normalized)
    n_rows = check_same_rows(y=y, y_proba=y_proba)
    check_columns_match_classes(P.shape[1], class_order, given=classes is not None)
    check_proba_names(y_proba, class_order)
    weight = check_sample_weight(sample_weight, n_rows)
    kept = np.flatnonzero(weight > 0)
    if kept.shape[0] < n_rows:
        codes, P, weight = codes[kept], P[kept], weight[kept]
    return Scored(codes, P, weight, class_order, kept, n_rows)


def value_of(statistic: Statistic, scored: Scored) -> float:
    """Return a statistic of the items themselves, each occurring once."""
    return float(statistic(np.ones((scored.n_items, 1)))[0])


def weighted_mean(losses: Vector, weight: Vector) -> Statistic:
    """Return the statistic that averages one loss per item."""
    weighted = weight * losses
    return lambda counts: (weighted @ counts) / (weight @ counts)


def check_choice(value: str, name: str, choices: tuple[str, ...], caller: str) -> None:
    """Raise when an option is not one of its words."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{caller}: {name} must be one of {listed}; got {value!r}.")
