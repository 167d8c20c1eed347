"""Fixed bins for scores, so that counts of any number of items have a bounded size."""

from __future__ import annotations

import numpy as np

from hetcal._typing import Rows, Vector

N_BINS = 4096
_LOWEST, _HIGHEST = 1e-6, 1e9


def log_bins(values: Vector) -> Rows:
    """Return bins on one fixed logarithmic scale from 1e-6 to 1e9, each 0.8 % wide."""
    clipped = np.clip(values, _LOWEST, _HIGHEST)
    share = np.log(clipped / _LOWEST) / np.log(_HIGHEST / _LOWEST)
    return np.minimum((share * N_BINS).astype(np.int64), N_BINS - 1)


def unit_bins(values: Vector) -> Rows:
    """Return bins of equal width from 0 to 1."""
    return np.clip((values * N_BINS).astype(np.int64), 0, N_BINS - 1)
