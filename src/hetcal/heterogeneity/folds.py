"""Folds and halves that keep groups together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]


def fold_of(
    codes: Codes, groups: Codes | None, n_splits: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the fold of each item; groups stay whole, folds get their share of each class.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Class of each item; a group counts with the class of its first item.
    groups : ndarray of int, shape (n,), or None
        Group of each item, 0..G-1.
    n_splits : int
        Folds; fewer when there are fewer groups.
    rng : numpy Generator

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.array([0, 0, 1, 1, 2, 2])
    >>> fold = fold_of(np.zeros(6, int), groups, 3, np.random.default_rng(0))
    >>> bool((fold[::2] == fold[1::2]).all()), len(set(fold.tolist()))
    (True, 3)
    """
    units = np.arange(len(codes)) if groups is None else groups
    names, first, unit = np.unique(units, return_index=True, return_inverse=True)
    shuffled = rng.permutation(len(names))
    by_class = shuffled[np.argsort(codes[first[shuffled]], kind="stable")]
    fold = np.empty(len(names), dtype=np.int64)
    fold[by_class] = np.arange(len(names)) % min(n_splits, len(names))
    return fold[unit]
