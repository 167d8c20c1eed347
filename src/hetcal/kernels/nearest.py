"""The nearest items of rows in Euclidean space, by comparing with all of them.

The compiled core compares items of a few dozen columns itself: a command that applies a calibrator
need not load scikit-learn's neighbours, which take longer than most predictions. Without the core,
and for more columns, scikit-learn does it.
"""

from __future__ import annotations

import numpy as np
import sklearn
from numpy.typing import NDArray

from hetcal._compat import neighbour_search
from hetcal._typing import Matrix
from hetcal.kernels._backend import native
from hetcal.kernels._checks import expect
from hetcal.kernels.parallel import n_threads

# With more columns scikit-learn's product of matrices is quicker than differences one by one.
_FEW_COLUMNS = 40


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
    with neighbour_search():
        search = sklearn.neighbors.NearestNeighbors(algorithm="brute").fit(items)
        return search.kneighbors(None if leave_out else rows, n_neighbors=k)
