"""Checks of arrays that kernels use as indices, shared by several declarations."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetcal._stored.declaration import expect
from hetcal._stored.fields import LARGEST, in_range, is_array, within


def check_codes(who: Any, codes: Any, n_items: int, n_classes: int) -> None:
    """Check the class codes of the calibration items."""
    expect(is_array(codes, "i", (n_items,)), who, "does not have one label per item")
    expect(in_range(codes, 0, n_classes), who, "has labels of no class")


def check_weight(who: Any, weight: Any, n_items: int) -> None:
    """Check the weights of the calibration items."""
    good = weight is None or (
        is_array(weight, "f", (n_items,))
        and weight.dtype == np.float64
        and within(weight, 0.0, LARGEST)
    )
    expect(good, who, "does not have one finite weight per item")
