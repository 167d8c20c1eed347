"""The nearest items of rows in Euclidean space, by comparing with all of them.

The compiled core compares items of a few dozen columns one by one: a command that applies a
calibrator need not load scikit-learn's neighbours, which take longer than most predictions. With
more columns a product of matrices in float32 finds out who may be near, for half the cost of
float64, and half of that again where items are compared with each other; these few are then
compared exactly. Without the core scikit-learn does it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

from hetcal._compat import neighbour_search
from hetcal._typing import Matrix
from hetcal.kernels._backend import native
from hetcal.kernels._checks import expect
from hetcal.kernels.parallel import n_threads

# With more columns a product of matrices is quicker than differences one by one.
_FEW_COLUMNS = 40
_BLOCK = 1024  # rows, and items, in one product
_LONGEST = 1e30  # squared length of a row in float32


def nearest_items(
    items: Matrix, rows: Matrix | None, k: int, n_jobs: int | None = 1
) -> tuple[Matrix, NDArray[np.int64]]:
    """Return distances and numbers of the nearest items, nearest first.

    Parameters
    ----------
    items : ndarray of shape (n, d)
    rows : ndarray of shape (m, d) or None
        None: the items themselves, each of which does not see itself.
    k : int
        How many neighbours; of several at the same distance the core takes the first.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    distance, index : ndarray of shape (m, k)

    Examples
    --------
    >>> items = np.array([[0.0], [1.0], [3.0]])
    >>> nearest_items(items, np.array([[2.5]]), 2)
    (array([[0.5, 1.5]]), array([[2, 1]]))
    >>> nearest_items(items, None, 1)[1].ravel()
    array([1, 0, 1])
    """
    items = np.require(items, np.float64, ["C", "A"])
    leave_out = rows is None
    rows = items if rows is None else np.require(rows, np.float64, ["C", "A"])
    there = len(items) - leave_out
    expect(0 < k <= there, "nearest_items", f"k must lie in 1, ..., {there}", k)
    expect(rows.shape[1] == items.shape[1], "nearest_items", "columns must agree", rows.shape)
    core = native()
    if core is not None and items.shape[1] <= _FEW_COLUMNS:
        distance, index = np.empty((len(rows), k)), np.empty((len(rows), k), np.int64)
        core.nearest_items(items, rows, leave_out, distance, index, n_threads(n_jobs))
        return distance, index
    if core is not None and _fits_float32(items) and _fits_float32(rows):
        return _by_products(core, items, None if leave_out else rows, k)
    with neighbour_search():
        search = sklearn.neighbors.NearestNeighbors(algorithm="brute").fit(items)
        return search.kneighbors(None if leave_out else rows, n_neighbors=k)


def _fits_float32(rows: Matrix) -> bool:
    return bool(np.abs(rows).max(initial=0.0) ** 2 * rows.shape[1] < _LONGEST)


def _by_products(
    core: Any, items: Matrix, rows: Matrix | None, k: int
) -> tuple[Matrix, NDArray[np.int64]]:
    """Bound all distances by products in float32, and compare exactly who may be near."""
    n_columns = items.shape[1]
    # Each value is rounded, then each product and each sum; and so are the bounds.
    search = core.NearestSearch(items, rows, k, (n_columns + 16) * np.finfo(np.float32).eps)
    right = items.astype(np.float32)
    left = right if rows is None else rows.astype(np.float32)
    for first in range(0, len(left), _BLOCK):
        part = left[first : first + _BLOCK]
        for other in range(first if rows is None else 0, len(right), _BLOCK):
            search.look_at(part @ right[other : other + _BLOCK].T, first, other)
    distance, index = np.empty((len(left), k)), np.empty((len(left), k), np.int64)
    search.finish(distance, index)
    return distance, index
