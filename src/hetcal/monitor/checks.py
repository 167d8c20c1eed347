"""The parameters and the input of a monitor, checked."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._typing import Rows
from hetcal._validation import check_labels
from hetcal._validation.containers import as_vector
from hetcal.monitor.distance import SCORES

_RATES = ("rate", "fdr", "alarm_rate")
# What a later call takes in time and memory grows with these.
_COUNTS = {
    "window": (2, 10_000),
    "horizon": (1, 200_000),
    "dependence": (1, 1_000_000),
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


def check_same_settings(one: Any, other: Any) -> None:
    """Raise where two monitors test in different ways, so that their counts do not add up."""
    for name in ("window", "horizon", "dependence", *_RATES):
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            raise ValueError(
                "SupportMonitor.merge needs equal window, horizon, dependence and rates; "
                f"{name} is {mine} here and {theirs} there."
            )


def distance_kind(wanted: str | None, has_features: bool) -> str | None:
    """Return the distance score to use."""
    if wanted == "auto":
        return "nearest" if has_features else None
    if wanted is not None and not has_features:
        raise ValueError(
            f"distance={wanted!r} needs features: call SupportMonitor.fit(X, y_proba=...)."
        )
    return wanted


def names_of(by: Any, n_items: int) -> NDArray:
    """Return names of sub-populations as text; blank where missing."""
    names = as_vector(by, "by")
    if len(names) != n_items:
        raise ValueError(
            f"by has {len(names)} entries for {n_items} items. Pass one name per item."
        )
    return np.array(["" if pd.isna(name) else str(name) for name in names.tolist()], dtype=object)


def classifier_output(y_proba: Any, logits: Any) -> dict[str, Any]:
    """Return what was given of the two, as named arguments of a calibrator."""
    given = {"y_proba": y_proba, "logits": logits}
    return {name: value for name, value in given.items() if value is not None}


def known_labels(y: Any, classes: NDArray, n_items: int) -> tuple[Rows, Rows]:
    """Return which items have a label, and the class codes of these labels."""
    y = as_vector(y, "y")
    if len(y) != n_items:
        raise ValueError(f"X has {n_items} rows but y has {len(y)}. Pass one label per row.")
    known = np.flatnonzero(~pd.isna(y))
    return known, check_labels(y[known], classes)[0] if len(known) else known
