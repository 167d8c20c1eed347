"""The one-dimensional views of a probability vector on which calibration errors are measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hetcal._typing import Vector
from hetcal._validation import check_choice
from hetcal.data import CalibrationSet

KINDS = ("top-label", "class-wise", "binary")


def calibration_marginals(
    items: CalibrationSet, kind: str, caller: str
) -> Iterator[tuple[Vector, Vector]]:
    """Yield pairs (score, outcome) of shape (n,) whose agreement defines calibration.

    ``"top-label"``: the largest probability, and whether its class was right (one pair);
    ``"class-wise"``: each column, and whether its class was the true one (K pairs);
    ``"binary"``: the second column alone (one pair, two classes only).
    """
    check_choice(kind, "kind", KINDS, caller)
    if kind == "binary" and items.n_classes != 2:
        raise ValueError(
            f"{caller}: kind='binary' needs two classes; got {items.n_classes}. "
            "Use kind='top-label' or kind='class-wise'."
        )
    return _pairs(items, kind)


def _pairs(items: CalibrationSet, kind: str) -> Iterator[tuple[Vector, Vector]]:
    P, codes = items.proba, items.codes
    if kind == "top-label":
        top = P.argmax(axis=1)
        yield P[np.arange(items.n_items), top], (top == codes).astype(np.float64)
        return
    columns = [1] if kind == "binary" else range(items.n_classes)
    for k in columns:
        yield P[:, k], (codes == k).astype(np.float64)
