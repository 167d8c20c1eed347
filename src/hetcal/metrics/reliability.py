"""Observed frequency against predicted probability, bin by bin."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hetcal._typing import Rows, Vector
from hetcal.data import CalibrationSet
from hetcal.kernels.intervals import effective_size, wilson_interval

COLUMNS = ["predicted", "observed", "low", "high", "smallest", "largest", "count", "weight"]


def reliability_bins(
    score: Vector, outcome: Vector, bins: Rows, items: CalibrationSet, confidence: float = 0.95
) -> pd.DataFrame:
    """Return one row per bin that holds items, in order of the score.

    Parameters
    ----------
    score, outcome : ndarray of shape (n,)
        How probable something was said to be, and whether it happened (0 or 1).
    bins : ndarray of int, shape (n,)
        The bin of each item.
    items : CalibrationSet
        The items; weights and groups enter the interval through the effective size.
    confidence : float, default=0.95
        Coverage of Wilson's interval of the observed frequency, bin by bin.

    Returns
    -------
    DataFrame
        ``predicted`` (mean score), ``observed`` (frequency), ``low``, ``high``, ``smallest``,
        ``largest`` (score), ``count`` (items), ``weight``.
    """
    weight, groups = items.weights, items.groups
    rows = []
    for number in np.unique(bins):
        inside = bins == number
        total = weight[inside].sum()
        share, happened, said = weight[inside] / total, outcome[inside], score[inside]
        observed = min(float(share @ happened), 1.0)  # a sum of shares may round above
        n = effective_size(happened, share, None if groups is None else groups[inside])
        low, high = wilson_interval(np.array([observed]), np.array([n]), confidence)
        ends = (low[0], high[0], said.min(), said.max())
        rows.append((share @ said, observed, *ends, np.count_nonzero(inside), total))
    return pd.DataFrame(rows, columns=COLUMNS)
