"""Many tests at once: adjusted p-values."""

from __future__ import annotations

import numpy as np

from hetcal._typing import Vector


def benjamini_hochberg(p_values: Vector) -> Vector:
    """Return adjusted p-values that control the false discovery rate; NaN stays NaN.

    Examples
    --------
    >>> import numpy as np
    >>> benjamini_hochberg(np.array([0.01, 0.02, 0.9, np.nan]))
    array([0.03, 0.03, 0.9 ,  nan])
    """
    q = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    adjusted = p_values[order] * len(order) / np.arange(1, len(order) + 1)
    q[order] = np.minimum.accumulate(adjusted[::-1])[::-1].clip(max=1.0)
    return q


def holm(p_values: Vector) -> Vector:
    """Return adjusted p-values that control the probability of any false rejection.

    Examples
    --------
    >>> import numpy as np
    >>> holm(np.array([0.01, 0.9, 0.02]))
    array([0.03, 0.9 , 0.04])
    """
    order = np.argsort(p_values, kind="stable")
    stepped = p_values[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted
