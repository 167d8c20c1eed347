"""Whether a monitor watches a given calibrator, or what became of it."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_same(calibrator: Any, watched: Any) -> bool:
    """Tell whether two calibrators have the same items, labels and similarities."""
    return _alike(calibrator, watched) and np.array_equal(
        calibrator.out_of_sample_support(), watched.out_of_sample_support()
    )


def is_extended(calibrator: Any, watched: Any) -> bool:
    """Tell whether the second is the first with more items (``SupportMonitor.extend``)."""
    if not _alike(calibrator, watched):
        return False
    n = len(calibrator.calibration_labels())
    if len(watched.calibration_labels()) == n:
        return False
    return all(
        np.array_equal(mine, theirs[:n]) if _both(mine, theirs) else mine is theirs
        for mine, theirs in zip(_per_item(calibrator), _per_item(watched), strict=True)
    )


def _alike(calibrator: Any, watched: Any) -> bool:
    """Tell whether the second has the labels of the first, and perhaps more."""
    if type(calibrator) is not type(watched):
        return False
    mine, theirs = calibrator.calibration_labels(), watched.calibration_labels()
    return np.array_equal(calibrator.classes_, watched.classes_) and np.array_equal(
        mine, theirs[: len(mine)]
    )


def _per_item(calibrator: Any) -> tuple[Any, Any]:
    """Return what is known of each item beside its label: probabilities, leaves; or None."""
    proba = getattr(getattr(calibrator, "scores_", None), "proba", None)
    return proba, getattr(getattr(calibrator, "similarity_", None), "leaves_", None)


def _both(one: Any, other: Any) -> bool:
    return one is not None and other is not None
