"""The one-dimensional views of a probability vector on which calibration errors are measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


def event_of(items: CalibrationSet, pos_label: Any, caller: str) -> tuple[Vector, Vector, str]:
    """Return the probability of one event per item, whether it happened, and the event in words.

    The event is that an item is of class ``pos_label``; where that is None, of the second of two
    classes, and with more classes that the predicted class is right.
    """
    if pos_label is None and items.n_classes > 2:
        [(score, outcome)] = calibration_marginals(items, "top-label", caller)
        return score, outcome, "of the predicted class"
    labels = items.classes.tolist()
    if pos_label is None:
        column = 1
    elif pos_label in labels:
        column = labels.index(pos_label)
    else:
        raise ValueError(
            f"{caller}: pos_label={pos_label!r} is not one of the classes {labels[:10]}. "
            "Name one of them."
        )
    outcome = (items.codes == column).astype(np.float64)
    return items.proba[:, column], outcome, f"of class {labels[column]}"


def _pairs(items: CalibrationSet, kind: str) -> Iterator[tuple[Vector, Vector]]:
    P, codes = items.proba, items.codes
    if kind == "top-label":
        top = P.argmax(axis=1)
        yield P[np.arange(items.n_items), top], (top == codes).astype(np.float64)
        return
    columns = [1] if kind == "binary" else range(items.n_classes)
    for k in columns:
        yield P[:, k], (codes == k).astype(np.float64)
