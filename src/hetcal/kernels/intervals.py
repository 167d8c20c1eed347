"""Intervals for proportions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Matrix = NDArray[np.float64]


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
