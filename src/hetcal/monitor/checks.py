"""What a monitor is given, checked; every error text about its input."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from hetcal._validation import check_proba
from hetcal._validation.containers import as_vector
from hetcal.calibration.wrapper import LocallyCalibratedClassifier
from hetcal.monitor.distance import SCORES

_RATES = ("rate", "fdr", "alarm_rate")
# What a later call takes in time and memory grows with these.
_COUNTS = {
    "window": (2, 10_000),
    "horizon": (1, 200_000),
    "max_groups": (1, 1000),
    "max_history": (1, 1_000_000),
    "random_state": (0, 2**32 - 1),
}


def check_parameters(monitor: Any) -> None:
    """Raise where a parameter of a monitor makes no sense."""
    if monitor.reference not in ("oob", "split"):
        raise ValueError(f"reference must be 'oob' or 'split'; got {monitor.reference!r}.")
    if monitor.distance not in ("auto", None, *SCORES):
        known = ", ".join(map(repr, SCORES))
        raise ValueError(f"distance must be 'auto', {known} or None; got {monitor.distance!r}.")
    for name in _RATES:
        value = getattr(monitor, name)
        if not (isinstance(value, Real) and 0 < float(value) < 1):
            raise ValueError(f"{name} must lie between 0 and 1; got {value!r}.")
    for name, (least, most) in _COUNTS.items():
        value = getattr(monitor, name)
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not (whole and least <= value <= most):
            raise ValueError(f"{name} must be an integer from {least} to {most}; got {value!r}.")


def calibrator_inside(calibrator: Any) -> Any:
    """Return the calibrator that knows support, or say which ones do."""
    if isinstance(calibrator, LocallyCalibratedClassifier):
        raise TypeError(
            "SupportMonitor watches a calibrator; got a LocallyCalibratedClassifier. Pass its "
            "calibrator_, and y_proba=classifier.estimator_.predict_proba(X) to the methods."
        )
    inner = getattr(calibrator, "calibrator_", calibrator)
    if not (hasattr(inner, "support") and hasattr(inner, "out_of_sample_support")):
        raise TypeError(
            f"SupportMonitor needs a calibrator with calibration support; {type(inner).__name__} "
            "has none. Use SimilarityCalibrator or HybridCalibrator."
        )
    check_is_fitted(inner, "classes_")
    return inner


def n_items(calibrator: Any) -> int | None:
    """Return how many calibration items there are; None where their number cannot change."""
    return getattr(getattr(calibrator, "similarity_", None), "n_items_", None)


def distance_kind(wanted: str | None, has_features: bool) -> str | None:
    """Return the distance score to use."""
    if wanted == "auto":
        return "nearest" if has_features else None
    if wanted is not None and not has_features:
        raise ValueError(
            f"distance={wanted!r} needs features: call SupportMonitor.fit(X, y_proba=...)."
        )
    return wanted


def check_same_items(
    calibrator: Any, n_items: int, X: Any, output: dict[str, Any]
) -> NDArray[np.int64] | None:
    """Check that these are the calibration items, and return their most probable class."""
    known = getattr(getattr(calibrator, "scores_", None), "proba", None)
    if X is not None and np.shape(X)[0] != n_items:
        raise ValueError(
            f"SupportMonitor(reference='oob').fit needs the {n_items} calibration items in their "
            f"order; got {np.shape(X)[0]} rows. For other items use reference='split'."
        )
    if not output:
        return None if known is None else known.argmax(axis=1)
    top = top_classes(output, calibrator)
    if len(top) != n_items:
        raise ValueError(
            f"SupportMonitor(reference='oob').fit needs the {n_items} calibration items in their "
            f"order; got the classifier's output on {len(top)}. For other items use "
            "reference='split'."
        )
    if known is not None and "y_proba" in output:
        given = check_proba(output["y_proba"])
        if given.shape != known.shape or not np.allclose(given, known, atol=1e-6):
            raise ValueError(
                "SupportMonitor(reference='oob').fit needs the calibration items in their order; "
                "this y_proba is not what the calibrator was fitted with. For other items use "
                "reference='split'."
            )
    return top


def top_classes(output: dict[str, Any], calibrator: Any) -> NDArray[np.int64]:
    """Return the most probable class of each item by the classifier's output."""
    given = output.get("y_proba")
    if given is not None:
        return check_proba(given).argmax(axis=1)
    if output.get("logits") is None:
        raise ValueError(
            f"{type(calibrator).__name__} was fitted with {calibrator.input_kind_}; pass it for "
            "the new items too."
        )
    return np.asarray(output["logits"], dtype=np.float64).argmax(axis=1)


def names_of(by: Any, n_rows: int) -> NDArray:
    """Return names of sub-populations as text; blank where missing."""
    names = as_vector(by, "by")
    if len(names) != n_rows:
        raise ValueError(f"by has {len(names)} entries for {n_rows} items. Pass one name per item.")
    return np.array(["" if pd.isna(name) else str(name) for name in names.tolist()], dtype=object)


def take_rows(table: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of an array or table of any kind."""
    return _safe_indexing(table, rows)
