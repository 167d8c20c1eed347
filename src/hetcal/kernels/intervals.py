"""Intervals for proportions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from hetcal._typing import Matrix


def wilson_interval(share: Matrix, n: Matrix, confidence: float = 0.95) -> tuple[Matrix, Matrix]:
    """Return Wilson's score interval for a proportion ``share`` seen in ``n`` (effective) trials.

    With no trials at all the interval is [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> low, high = wilson_interval(np.array([0.61]), np.array([214.0]))
    >>> low.round(3), high.round(3)
    (array([0.543]), array([0.673]))
    """
    z2 = ndtri(0.5 + confidence / 2) ** 2
    n = np.asarray(n, dtype=np.float64)
    middle = (n * share + z2 / 2) / (n + z2)
    half = np.sqrt(z2 * (n * share * (1 - share) + z2 / 4)) / (n + z2)
    # Rounding must neither leave [0, 1] nor the share itself outside.
    low, high = np.minimum(middle - half, share), np.maximum(middle + half, share)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def exact_interval(share: Matrix, n: Matrix, confidence: float = 0.95) -> tuple[Matrix, Matrix]:
    """Return Clopper and Pearson's interval, which never covers too little.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = exact_interval(np.array([0.0, 0.5]), np.array([10.0, 10.0]))
    >>> low.round(3), high.round(3)
    (array([0.   , 0.187]), array([0.308, 0.813]))
    """
    tail, n = (1 - confidence) / 2, np.asarray(n, dtype=np.float64)
    hits, misses = n * share, n * (1 - np.asarray(share))
    tiny = np.finfo(np.float64).tiny
    low = np.where(hits > 0, betaincinv(np.maximum(hits, tiny), misses + 1, tail), 0.0)
    high = np.where(misses > 0, betaincinv(hits + 1, np.maximum(misses, tiny), 1 - tail), 1.0)
    return low, high


def effective_size(
    outcome: Matrix, share: Matrix, groups: NDArray[np.int64] | None = None
) -> float:
    """Return how many equal, independent trials a weighted proportion rests on.

    Where trials come in groups, as many as would give the proportion the variance that the sums
    over groups show; at least the number of groups, at most that of trials.

    Parameters
    ----------
    outcome : ndarray of shape (n,)
        Zeros and ones.
    share : ndarray of shape (n,)
        Weights that sum to one.
    groups : ndarray of int, shape (n,), optional

    Examples
    --------
    >>> import numpy as np
    >>> twice, share = np.repeat([0.0, 1.0, 1.0], 2), np.full(6, 1 / 6)
    >>> round(effective_size(twice, share))
    6
    >>> round(effective_size(twice, share, groups=np.repeat([0, 1, 2], 2)))
    3
    """
    n_trials = 1 / float(share @ share)
    if groups is None:
        return n_trials
    of_groups = np.bincount(groups, share)
    n_groups = 1 / float(of_groups @ of_groups)
    # Neither a single group nor equal outcomes show how far groups differ.
    if n_groups < 1 + 1e-9 or outcome.min() == outcome.max():
        return n_groups
    mean = float(share @ outcome)
    deviations = np.bincount(groups, share * (outcome - mean))
    # Few groups look more alike than they are.
    variance = float(deviations @ deviations) * n_groups / (n_groups - 1)
    by_variance = mean * (1 - mean) / max(variance, 1e-300)
    return float(np.clip(by_variance, n_groups, n_trials))
