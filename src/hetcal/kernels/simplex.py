"""Geometry of probability vectors: logarithms with a floor, normalisation."""

from __future__ import annotations

import numpy as np

from hetcal._typing import Matrix

# What the zeros of a coarse classifier (a decision tree) are read as at most. Over the cells that
# develop settings in benchmarks/global_calibrators.py, 0.01 did slightly better than 0.001.
_LARGEST_FLOOR = 1e-2
_SMALLEST_FLOOR = 1e-300


def zero_floor(P: Matrix) -> float:
    """Return the value that a probability of exactly zero is read as.

    A hard zero means "less than the smallest thing this classifier can say": half of the smallest
    positive probability in ``P``, and never more than 0.01.

    Examples
    --------
    >>> import numpy as np
    >>> zero_floor(np.array([[0.0, 1.0], [0.0005, 0.9995]]))
    0.00025
    """
    positive = P[P > 0]
    smallest = float(positive.min()) if positive.size else 1.0
    return min(max(smallest / 2, _SMALLEST_FLOOR), _LARGEST_FLOOR)


def log_probabilities(P: Matrix, floor: float) -> Matrix:
    """Return log P with everything below ``floor`` raised to it."""
    return np.log(np.maximum(P, floor))


def normalize_rows(Q: Matrix, fallback: Matrix | None = None) -> Matrix:
    """Scale rows to sum to one; rows without mass become ``fallback`` (uniform when None)."""
    total = Q.sum(axis=1, keepdims=True)
    empty = ~(total[:, 0] > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = Q / total
    if empty.any():
        scaled[empty] = 1.0 / Q.shape[1] if fallback is None else fallback[empty]
    return scaled
