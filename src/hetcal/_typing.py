"""Names of the array types that signatures use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
#: Whole numbers, one per item: rows of a table, class codes, groups, folds.
Rows = NDArray[np.int64]
