"""Whether a hybrid that the user passes was fitted to the very items that advice is wanted on."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetcal.calibration.hybrid import HybridCalibrator
from hetcal.data import CalibrationSet
from hetcal.kernels import forest as kernel

_REMEDY = "Leave it out, and advise fits its own."
_ROWS_CHECKED = 500
# Of the leaves that items fall into; not all, since a table read back from text is rounded.
_SAME = 0.99


def check_given_hybrid(
    hybrid: HybridCalibrator | None, items: CalibrationSet, everyone: CalibrationSet
) -> None:
    """Accept one that was fitted to the items, with or without those of weight 0."""
    if hybrid is None:
        return
    said = getattr(hybrid, "out_of_sample_proba_", None)
    with_all = np.array_equal(
        getattr(hybrid, "calibration_rows_", ()), np.flatnonzero(everyone.weights > 0)
    )
    if said is None or said.shape != (everyone if with_all else items).output.shape:
        raise ValueError(
            "advise: hybrid must be a HybridCalibrator that was fitted to these very items "
            f"({items.n_items} with a positive weight); got "
            f"{'one that is not fitted' if said is None else f'one fitted to {said.shape[0]}'}. "
            f"{_REMEDY}"
        )
    if not np.array_equal(hybrid.classes_, items.classes):
        raise ValueError(
            f"advise: hybrid was fitted with the classes {hybrid.classes_.tolist()}, but these "
            f"items have {items.classes.tolist()}, in this order. {_REMEDY}"
        )
    different = _difference(hybrid, items)
    if different:
        raise ValueError(
            "advise: hybrid must be a HybridCalibrator that was fitted to these very items, in "
            f"the same order; got one fitted to as many items with other {different}. {_REMEDY}"
        )


def _difference(hybrid: HybridCalibrator, items: CalibrationSet) -> str:
    """Return what the items that the hybrid remembers differ in; empty where in nothing.

    It remembers their labels and which leaves they fall into, of trees that were grown until they
    told items apart: other features, or other probabilities, lead elsewhere.
    """
    family: Any = hybrid._proximity()
    if not np.array_equal(family.codes_, items.codes):
        return "labels"
    rows = np.unique(np.linspace(0, items.n_items - 1, _ROWS_CHECKED).astype(np.int64))
    part = items.take(rows)
    features = hybrid.encoder_.transform(part.X, quiet=True)
    Z = family.space_.transform(features, part.scores)
    leaves = kernel.apply(family.forest_, Z, family.n_jobs)
    same = float(np.mean(leaves == family.leaves_[rows]))
    return "" if same >= _SAME else "features or probabilities"
