"""The smallest change of a probability row after which a given class is on top."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix


def keep_top(Q: Matrix, top: NDArray[np.int64]) -> Matrix:
    """Return the rows nearest to those of Q in which column ``top`` is the largest.

    The nearest row (in the sum of squares) takes the columns that stand above ``top`` and ``top``
    itself to their common mean and leaves the others alone, so the sum of the row stays as it was.
    Column ``top`` is one floating-point step above the mean, so that ``argmax`` finds it.

    Parameters
    ----------
    Q : ndarray of shape (n, K)
        Probabilities.
    top : ndarray of shape (n,)
        The column that is to be the largest in each row.

    Examples
    --------
    >>> import numpy as np
    >>> keep_top(np.array([[0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]), np.array([0, 2])).round(3)
    array([[0.35, 0.35, 0.3 ],
           [0.1 , 0.2 , 0.7 ]])
    """
    kept = Q.copy()
    rows = np.flatnonzero(Q.argmax(axis=1) != top)
    if rows.shape[0] == 0:
        return kept
    wrong, column = Q[rows], top[rows]
    at_top = np.arange(Q.shape[1]) == column[:, None]
    rivals = -np.sort(np.where(at_top, np.inf, -wrong), axis=1)[:, :-1]  # largest first
    own = wrong[at_top][:, None]
    joined = np.arange(2, Q.shape[1] + 1)
    mean = (own + np.cumsum(rivals, axis=1)) / joined  # of top and its 1, 2, ... largest rivals
    following = np.hstack([rivals[:, 1:], np.full((rows.shape[0], 1), -np.inf)])
    level = mean[np.arange(rows.shape[0]), (mean >= following).argmax(axis=1)]
    wrong = np.minimum(wrong, level[:, None])
    wrong[at_top] = np.nextafter(level, np.inf)
    kept[rows] = wrong
    return kept
