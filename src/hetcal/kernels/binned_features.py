"""Features as bins: each value replaced by its place among at most 255 intervals of its column.

What a tree asks of a feature is on which side of a threshold its values lie. With values sorted
into bins once, every tree that is grown later, for whatever labels or part of the items, reads one
byte per value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix, Rows
from hetcal.kernels._checks import expect

MOST_BINS = 255
MISSING = 255  # the code of a missing value
_LARGEST = 1e30


@dataclass(frozen=True, eq=False)
class BinnedFeatures:
    """Bins of the features of some items; made by :func:`bin_features`, without labels.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n_features, n_items)
        The bin of each value; 255 where it is missing.
    low, high : ndarray of float32, shape (n_features, 255)
        The smallest and the largest value in each bin; NaN where there is no such bin.
    """

    codes: NDArray[np.uint8]
    low: NDArray[np.float32]
    high: NDArray[np.float32]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.codes.shape[1]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.codes.shape[0]

    def take(self, rows: Rows) -> BinnedFeatures:
        """Return some of the items, in the same bins."""
        return BinnedFeatures(np.ascontiguousarray(self.codes[:, rows]), self.low, self.high)

    def rounded(self) -> Matrix:
        """Return the middle of each value's bin, shape (n_items, n_features); NaN where missing."""
        middle = np.full((self.n_features, MISSING + 1), np.nan)
        middle[:, :MOST_BINS] = self.low / 2.0 + self.high / 2.0
        return np.take_along_axis(middle, self.codes.astype(np.intp), axis=1).T

    def beside(self, other: BinnedFeatures) -> BinnedFeatures:
        """Return the features of both, these first; the items are the same."""
        expect(
            self.n_items == other.n_items,
            "BinnedFeatures.beside",
            f"the other features must be of {self.n_items} items",
            other.n_items,
        )
        names = ("codes", "low", "high")
        return BinnedFeatures(
            *(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names)
        )


def bin_features(Z: Any) -> BinnedFeatures:
    """Sort the values of each column into bins.

    Up to 255 distinct values have a bin each; beyond, neighbours share bins with about equally many
    items. NaN is a missing value.

    Parameters
    ----------
    Z : array-like of shape (n_items, n_features)
        Read as float32, as forests read the rows that they predict.

    Examples
    --------
    >>> binned = bin_features([[3.0], [1.0], [np.nan], [3.0]])
    >>> binned.codes
    array([[  1,   0, 255,   1]], dtype=uint8)
    """
    Z = np.asarray(Z)
    expect(Z.ndim == 2 and Z.size, "bin_features", "Z must be a table with values", Z.shape)
    if Z.dtype != np.float32:
        # Huge values keep their sign, which is all that a split needs.
        Z = np.clip(Z, -_LARGEST, _LARGEST).astype(np.float32)
    n_items, n_features = Z.shape
    codes = np.empty((n_features, n_items), dtype=np.uint8)
    low, high = np.full((2, n_features, MOST_BINS), np.nan, dtype=np.float32)
    for f in range(n_features):
        column = np.ascontiguousarray(Z[:, f])
        missing = np.isnan(column)
        first, last = _bins(np.sort(column[~missing] if missing.any() else column))
        low[f, : len(first)], high[f, : len(last)] = first, last
        codes[f] = np.where(missing, MISSING, np.searchsorted(last, column))
    return BinnedFeatures(codes, low, high)


def _bins(known: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the smallest and the largest value in each bin of sorted values."""
    starts = (
        np.flatnonzero(np.append(True, known[1:] > known[:-1])) if len(known) else np.empty(0, int)
    )
    if len(starts) <= MOST_BINS:
        return known[starts], known[starts]
    # The bin of a distinct value, from the middle of its places among all values.
    ends = np.append(starts[1:], len(known))
    bins = (starts + ends) * MOST_BINS // (2 * len(known))
    begins = np.flatnonzero(np.append(True, bins[1:] > bins[:-1]))
    return known[starts[begins]], known[ends[np.append(begins[1:], len(bins)) - 1] - 1]
