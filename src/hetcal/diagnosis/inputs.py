"""What diagnose is given, checked and put in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal._validation import (
    check_columns_match_classes,
    check_labels,
    check_logits,
    check_proba,
    check_same_rows,
)
from hetcal._validation.containers import as_frame, as_vector, masked_as_missing, take_rows
from hetcal.data import CalibrationSet
from hetcal.metrics.scores import expected_cost


def calibration_items(
    X: Any,
    y: Any,
    y_proba: Any,
    logits: Any,
    classes: Any,
    sample_weight: Any,
    groups: Any,
    time: Any,
    by: Any,
) -> tuple[CalibrationSet, NDArray[np.int64], NDArray[np.int64] | None, Any]:
    """Return the items in order of time, their rows, their moments, and ``by`` in that order."""
    if X is None:
        raise ValueError(
            "diagnose compares items by their features; X is None. Pass X; how good the "
            "probabilities are on average, hetcal.metrics.evaluate says without it."
        )
    items = CalibrationSet.check(
        X,
        y,
        y_proba=y_proba,
        logits=logits,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        caller="diagnose",
    )
    rows = np.flatnonzero(items.weights > 0)
    moment = None
    if time is not None:
        moment = _moments(time, items.n_items)
        rows = rows[np.argsort(moment[rows], kind="stable")]
        moment = moment[rows]
    if isinstance(by, Mapping):
        check_same_rows(y=y, **{str(key): value for key, value in by.items()})
        by = {key: take_rows(as_vector(value, str(key)), rows) for key, value in by.items()}
    if np.array_equal(rows, np.arange(items.n_items)):
        return items, rows, moment, by
    return items.take(rows).detached(), rows, moment, by


def _moments(time: Any, n: int) -> NDArray[np.int64]:
    """Return the rank of each moment, equal where the times are."""
    values = pd.Series(as_vector(time, "time"))
    if len(values) != n:
        raise ValueError(
            f"diagnose: time has {len(values)} values for {n} items. Pass one per item."
        )
    if values.isna().any():
        raise ValueError(
            f"diagnose: time is missing in row {int(values.isna().to_numpy().argmax())} (counted "
            "from 0). Fill it in, or leave such rows out."
        )
    if not pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_datetime64_any_dtype(
        values
    ):
        dates = pd.to_datetime(values, errors="coerce", format="mixed", utc=True)
        values = values.astype(str) if dates.isna().any() else dates
    return values.rank(method="dense").to_numpy().astype(np.int64) - 1


def new_items(
    items: CalibrationSet, X_test: Any, y_proba: Any, logits: Any
) -> tuple[Any, Matrix] | None:
    """Return features and output of the new items, or None where there are none."""
    if X_test is None and y_proba is None and logits is None:
        return None
    given = y_proba if items.kind == "y_proba" else logits
    if X_test is None or given is None:
        raise ValueError(
            f"diagnose: new items need both X_test and {items.kind}_test, the same kind of output "
            "as the calibration items."
        )
    check_same_rows(X_test=X_test, **{f"{items.kind}_test": given})
    checked = (check_proba if items.kind == "y_proba" else check_logits)(
        given, name=f"{items.kind}_test"
    )
    check_columns_match_classes(
        checked.shape[1], items.classes, name=f"{items.kind}_test", given=True
    )
    return X_test, checked


def new_labels(items: CalibrationSet, y_test: Any, n: int | None) -> NDArray[np.int64] | None:
    """Return the class number of each new item, -1 where it has no label; None without labels."""
    if y_test is None:
        return None
    if n is None:
        raise ValueError(f"diagnose: y_test needs X_test and {items.kind}_test beside it.")
    values = pd.Series(as_vector(y_test, "y_test"))
    check_same_rows(y_test=values, X_test=np.empty((n, 1)))
    known = values.notna().to_numpy()
    codes = np.full(n, -1, dtype=np.int64)
    if known.any():
        codes[known] = check_labels(np.array(values[known].tolist()), items.classes)[0]
        return codes
    return None


def check_costs(costs: Any, items: CalibrationSet) -> Matrix | None:
    """Return the cost matrix, or None where there is none."""
    if costs is None:
        return None
    # Its checks are the ones to pass.
    expected_cost(items.labels, items.proba, costs, classes=items.classes)
    return np.asarray(costs, dtype=np.float64)


def named(X: Any, names: Sequence[str] | None) -> Any:
    """Return an array as a table with these column names."""
    if names is None or X is None or as_frame(X) is not None:
        return X
    matrix = np.asarray(masked_as_missing(X))
    if matrix.ndim != 2 or matrix.shape[1] != len(names):
        raise ValueError(
            f"diagnose: feature_names has {len(names)} names for an array of shape {matrix.shape}."
        )
    return pd.DataFrame(matrix, columns=list(names))
