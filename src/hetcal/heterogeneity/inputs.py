"""What the estimator accepts: its parameters and its items, checked."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_random_state

from hetcal._validation import (
    check_columns_match_classes,
    check_groups,
    check_labels,
    check_proba,
    check_proba_names,
    check_same_rows,
    check_sample_weight,
    check_two_classes,
    warn_column_order,
)
from hetcal.heterogeneity.honest import Items

_ESTIMATES = ("oob", "paper")
_NEIGHBOURHOODS = (None, "net", "overlap", "item")


def check_parameters(estimator: Any) -> None:
    """Raise when a parameter of ``HiddenHeterogeneity`` makes no sense."""
    radius, trees, model = estimator.radius, estimator.n_estimators, estimator.local_model
    _require(
        estimator.estimate in _ESTIMATES, "estimate", f"one of {_ESTIMATES}", estimator.estimate
    )
    kind = estimator.neighbourhoods
    _require(kind in _NEIGHBOURHOODS, "neighbourhoods", f"one of {_NEIGHBOURHOODS}", kind)
    positive = isinstance(radius, Real) and 0 < float(radius) <= 1
    _require(radius == "auto" or positive, "radius", "in (0, 1] or 'auto'", radius)
    for name, least in (("n_null", 0), ("min_neighbors", 2)):
        value = getattr(estimator, name)
        is_count = isinstance(value, Integral) and int(value) >= least
        _require(is_count, name, f"an integer of at least {least}", value)
    is_count = trees is None or (isinstance(trees, Integral) and int(trees) >= 1)
    _require(is_count, "n_estimators", "None or an integer of at least 1", trees)
    if model is not None:
        expected = "None for estimate='paper', whose local models are forests"
        _require(estimator.estimate == "oob", "local_model", expected, model)
        is_classifier = hasattr(model, "predict_proba")
        _require(is_classifier, "local_model", "a classifier with predict_proba", model)


def calibration_items(
    X: Any, y: Any, y_proba: Any, sample_weight: Any, groups: Any, classes: Any
) -> tuple[Any, Items, NDArray]:
    """Return the features, the checked items and the classes; items of weight 0 are left out."""
    for name, given in (("X", X), ("y", y), ("y_proba", y_proba)):
        if given is None:
            raise ValueError(f"HiddenHeterogeneity needs {name} of the labelled items; got None.")
    check_same_rows(X=X, y=y, y_proba=y_proba)
    codes, names = check_labels(y, classes)
    P = check_proba(y_proba)
    check_columns_match_classes(P.shape[1], names, given=classes is not None)
    check_proba_names(y_proba, names)
    check_two_classes(codes, names)
    weight = check_sample_weight(sample_weight, len(codes))
    # A test must not find more because all weights were multiplied: their mean is one.
    weight = weight / weight[weight > 0].mean()
    group_codes = check_groups(groups, len(codes))
    warn_column_order(codes, P, names, name="y_proba", weight=weight, groups=group_codes)
    if (weight > 0).all():
        return X, Items(P, codes, weight, group_codes), names
    rows = np.flatnonzero(weight > 0)
    kept = None if group_codes is None else group_codes[rows]
    return _safe_indexing(X, rows), Items(P[rows], codes[rows], weight[rows], kept), names


def same_items(table: Any, items: Items, X: Any, y_proba: Any) -> tuple[Any, Items]:
    """Return the items of fit, with other features or probabilities where given."""
    n = len(items.codes)
    for name, given in (("X", X), ("y_proba", y_proba)):
        if given is not None and check_same_rows(X=given) != n:
            raise ValueError(
                f"HiddenHeterogeneity.subgroups got {name} of {check_same_rows(X=given)} rows "
                f"without y, but was fitted with {n}. Pass y for other items, or the items of fit."
            )
    P = items.P if y_proba is None else check_proba(y_proba)
    return table if X is None else X, Items(P, items.codes, items.weight, items.groups)


def seed_of(random_state: Any) -> int:
    """Return one number that everything random is derived from."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _require(holds: bool, name: str, expected: str, got: object) -> None:
    if not holds:
        raise ValueError(f"HiddenHeterogeneity: {name} must be {expected}; got {got!r}.")
