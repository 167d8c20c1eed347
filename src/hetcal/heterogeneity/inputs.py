"""What the estimator accepts: its parameters and its items, checked."""

from __future__ import annotations

from numbers import Integral, Real
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state

from hetcal._typing import Matrix
from hetcal._validation import (
    PASS_LOGITS,
    check_columns_match_classes,
    check_logits,
    check_one_kind,
    check_proba,
    check_same_rows,
)
from hetcal.data import CalibrationSet
from hetcal.heterogeneity.neighborhood_means import MeasuredItems

_LARGEST_SEED = 2**32 - 1
_ESTIMATES = ("orthogonal", "paper")
_NEIGHBORHOODS = (None, "net", "overlap", "item")


def check_parameters(estimator: Any) -> None:
    """Raise when a parameter of ``HiddenHeterogeneity`` makes no sense."""
    radius, trees, draws = estimator.radius, estimator.n_estimators, estimator.n_null
    _require(
        estimator.estimate in _ESTIMATES, "estimate", f"one of {_ESTIMATES}", estimator.estimate
    )
    kind = estimator.neighborhoods
    _require(kind in _NEIGHBORHOODS, "neighborhoods", f"one of {_NEIGHBORHOODS}", kind)
    positive = isinstance(radius, Real) and 0 < float(radius) <= 1
    _require(radius == "auto" or positive, "radius", "in (0, 1] or 'auto'", radius)
    least = estimator.min_neighbors
    is_count = isinstance(least, Integral) and int(least) >= 2
    _require(is_count, "min_neighbors", "an integer of at least 2", least)
    is_count = draws is None or (isinstance(draws, Integral) and int(draws) >= 0)
    _require(is_count, "n_null", "None or an integer of at least 0", draws)
    is_count = trees is None or (isinstance(trees, Integral) and int(trees) >= 1)
    _require(is_count, "n_estimators", "None or an integer of at least 1", trees)


def check_items(
    X: Any,
    y: Any,
    y_proba: Any,
    logits: Any,
    *,
    classes: Any,
    sample_weight: Any = None,
    groups: Any = None,
) -> CalibrationSet:
    """Return the checked calibration set of :class:`HiddenHeterogeneity`."""
    if X is None:
        raise ValueError("HiddenHeterogeneity needs X of the labelled items; got None.")
    return CalibrationSet.check(
        X,
        y,
        y_proba=y_proba,
        logits=logits,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        caller="HiddenHeterogeneity",
    )


def check_predictions(y_proba: Any, logits: Any, classes: NDArray) -> Matrix:
    """Return probabilities of new items, from whichever of the two was passed."""
    kind = check_one_kind(y_proba, logits, caller="HiddenHeterogeneity")
    if kind == "y_proba":
        P = check_proba(y_proba, if_logits=PASS_LOGITS)
    else:
        P = softmax(check_logits(logits), axis=1)
    check_columns_match_classes(P.shape[1], classes, name=kind, given=True)
    return P


def same_items(
    table: Any, items: MeasuredItems, classes: NDArray, X: Any, y_proba: Any
) -> CalibrationSet:
    """Return the items of fit, with other features or probabilities where given."""
    n = len(items.codes)
    for name, given in (("X", X), ("y_proba", y_proba)):
        if given is not None and check_same_rows(X=given) != n:
            raise ValueError(
                f"HiddenHeterogeneity.subgroups got {name} of {check_same_rows(X=given)} rows "
                f"without y, but was fitted with {n}. Pass y for other items, or the items of fit."
            )
    features = table if X is None else X
    if features is None:
        raise ValueError(
            "HiddenHeterogeneity.subgroups needs X: this estimator was loaded from a file, which "
            "does not keep the features. Pass X, y_proba and y."
        )
    return CalibrationSet.check(
        features,
        classes[items.codes],
        y_proba=items.P if y_proba is None else y_proba,
        classes=classes,
        sample_weight=items.weight,
        groups=items.groups,
        caller="HiddenHeterogeneity.subgroups",
        order_is_known=True,
    )


def seed_of(random_state: Any) -> int:
    """Return one number that everything random is derived from."""
    if isinstance(random_state, Integral) and 0 <= int(random_state) <= _LARGEST_SEED:
        return int(random_state)
    if random_state is None or isinstance(random_state, np.random.RandomState | ModuleType):
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    raise ValueError(
        f"random_state must be an integer from 0 to {_LARGEST_SEED}, a numpy RandomState or None; "
        f"got {random_state!r}. Pass e.g. random_state=0."
    )


def _require(holds: bool, name: str, expected: str, got: object) -> None:
    if not holds:
        raise ValueError(f"HiddenHeterogeneity: {name} must be {expected}; got {got!r}.")
