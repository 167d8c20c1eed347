"""Tell copies of items from rows that are equal because features have few values.

Two rows that agree in every column agree in each single one. So a column whose values rarely
coincide bounds how many pairs of equal rows chance could make, whatever the other columns do and
however they hang together. How often values coincide by chance is read off rows that are different
(a value that many share, such as zero), and off how finely a column is resolved: two values drawn
from a density f on a grid of step h are equal with probability h times the integral of f squared,
about 0.4 h over the interquartile range. Columns with few values say nothing, and where all
columns are such, equal rows are what is to be expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal.data.calibration_set import CalibrationSet

_FEWEST, _LEAST_SHARE = 5, 0.01
# A column must have so many values, of the rows and in all; ten copies of each row are natural.
_VALUES_PER_ROW, _FEWEST_VALUES = 0.1, 30
_TIMES_CHANCE = 3.0


@dataclass(frozen=True)
class Repetition:
    """Rows that repeat another one of another group, and how many of them have its label."""

    n_repeats: int
    n_same_label: int


def repeated_rows(items: CalibrationSet, features: Matrix | None = None) -> Repetition | None:
    """Return how many rows repeat others, None where there are few or chance explains them.

    ``features`` are those of the set, where they are numbers already.
    """
    features = items.features() if features is None else features
    whole_rows = _as_bytes(features, items.output)
    _, first, row = np.unique(whole_rows, return_index=True, return_inverse=True)
    n_repeats = items.n_items - first.shape[0]
    if items.groups is not None:  # copies within a group are kept together anyway
        n_repeats = _n_different(row, items.groups) - first.shape[0]
    if n_repeats < max(_FEWEST, _LEAST_SHARE * items.n_items):
        return None
    pairs = items.n_items * (items.n_items - 1) / 2
    if n_repeats < _TIMES_CHANCE * pairs * _coincidence(features, first):
        return None
    kinds = np.unique(np.column_stack([row, items.codes, items.units]), axis=0)
    n_same = kinds.shape[0] - _n_different(kinds[:, 0], kinds[:, 1])
    return Repetition(int(n_repeats), int(n_same))


def n_rows_seen(items: CalibrationSet, X: Any, output: Matrix) -> int:
    """Return how many new rows repeat an item; 0 where these are few or chance explains them."""
    known = items.features()
    new = _as_bytes(np.asarray(items.encoder().transform(X)), output)
    seen = set(_as_bytes(known, items.output).tolist())
    n_seen = sum(row in seen for row in new.tolist())
    different = np.unique(known, axis=0, return_index=True)[1]
    chance = len(new) * items.n_items * _coincidence(known, different)
    enough = max(_FEWEST, _LEAST_SHARE * len(new), _TIMES_CHANCE * chance)
    return n_seen if n_seen >= enough else 0


def _as_bytes(features: Matrix, output: Matrix) -> NDArray:
    """Return each row as one value that can be compared."""
    everything = np.ascontiguousarray(np.hstack([features, output])) + 0.0  # -0 is 0
    return everything.view(np.dtype((np.void, everything.strides[0]))).ravel()


def _coincidence(features: Matrix, first: NDArray[np.int64]) -> float:
    """Return the smallest chance, over columns, that two rows have the same value."""
    return min((_chance_of_same(column, column[first]) for column in features.T), default=1.0)


def _chance_of_same(column: Matrix, of_different_rows: Matrix) -> float:
    values, counts = np.unique(of_different_rows, return_counts=True, equal_nan=True)
    known = values[np.isfinite(values)]
    if known.shape[0] < max(_VALUES_PER_ROW * column.shape[0], _FEWEST_VALUES):
        return 1.0
    n = of_different_rows.shape[0]
    shared = float((counts * (counts - 1.0)).sum() / (n * (n - 1)))
    quarter, three_quarters = np.nanquantile(column, [0.25, 0.75])
    if quarter == three_quarters:
        return 1.0
    # Values that differ by rounding alone are one.
    steps = np.diff(known)
    step = float(steps[steps > 1e-12 * np.abs(known).max()].min(initial=np.inf))
    return max(shared, min(0.4 * step / float(three_quarters - quarter), 1.0))


def _n_different(first: NDArray, second: NDArray) -> int:
    return np.unique(np.column_stack([first, second]), axis=0).shape[0]
