"""Any calibrator, ours or a user's own, on a calibration set: fitted, and out of sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from hetcal._typing import Matrix, Rows
from hetcal._validation import check_predicted_proba
from hetcal.data import CalibrationSet, Folds, out_of_sample
from hetcal.data.folds import Split


def seeded(calibrator: Any, random_state: int) -> Any:
    """Return the calibrator with the seed, where it or the one it wraps takes one."""
    takes = {"random_state", "calibrator__random_state"} & set(calibrator.get_params())
    return calibrator.set_params(**dict.fromkeys(takes, random_state))


def fitted_to(calibrator: Any, items: CalibrationSet) -> Any:
    """Return a clone of the calibrator, fitted to the items.

    Ours take the checked set as it is; others get arrays, and of weights and groups what their
    ``fit`` accepts.
    """
    model = clone(calibrator)
    if "classes" in model.get_params(deep=False):
        model.set_params(classes=items.classes)
    if _takes_sets(model, "fit", "fit_set"):
        return model.fit_set(items)
    named = items.arguments
    for name in ("sample_weight", "groups"):
        if name in named and not has_fit_parameter(model, name):
            del named[name]
    return model.fit(items.X, items.labels, **named)


def predicted_by(fitted: Any, items: CalibrationSet) -> Matrix:
    """Return what a fitted calibrator says of items that were checked already."""
    if _takes_sets(fitted, "predict_proba", "predict_set"):
        said = fitted.predict_set(items)
    else:
        said = fitted.predict_proba(items.X, **{items.kind: items.output})
    return checked_proba(fitted, said, items.output.shape)


def checked_proba(fitted: Any, predicted: Any, shape: tuple[int, ...]) -> Matrix:
    """Return predictions, which are checked unless a class of hetcal made them.

    Parameters
    ----------
    fitted : calibrator or classifier
        Who predicted.
    predicted : array-like
        What it said.
    shape : (int, int)
        Items and classes.
    """
    if type(fitted).__module__.partition(".")[0] == "hetcal":
        return predicted
    n_items, n_classes = shape
    return check_predicted_proba(predicted, (n_items, n_classes), by=type(fitted).__name__)


def shared_folds(items: CalibrationSet, random_state: int) -> Folds:
    """Return the folds on which methods are compared that have no way of their own."""
    return Folds.make(items.n_items, seed=[random_state, 0], groups=items.groups)


def out_of_sample_proba(fitted: Any, items: CalibrationSet, random_state: int = 0) -> Matrix:
    """Return the fitted calibrator's own out-of-sample predictions, else cross-fitted ones."""
    own = getattr(fitted, "out_of_sample_proba_", None)
    if own is not None:
        return checked_proba(fitted, own, items.output.shape)
    return cross_fitted(fitted, items, shared_folds(items, random_state))


def cross_fitted(calibrator: Any, items: CalibrationSet, splits: Iterable[Split]) -> Matrix:
    """Return predictions by calibrators that have not seen the item (or its group).

    NaN where what is left to learn from holds a single class.

    Parameters
    ----------
    calibrator : calibrator
    items : CalibrationSet
    splits : Folds or iterable of (train rows, test rows)
    """

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        part = items.take(train)
        if np.unique(part.codes[part.weights > 0]).shape[0] < 2:
            return lambda test: np.full((test.shape[0], items.n_classes), np.nan)
        fitted = fitted_to(calibrator, part)
        return lambda test: predicted_by(fitted, items.take(test))

    return out_of_sample(learn, splits, items.n_items)


def _takes_sets(model: Any, plain: str, with_set: str) -> bool:
    """Say whether the method for checked sets does what the plain one does.

    A user's subclass may have a ``fit`` or ``predict_proba`` of its own; that one counts.
    """
    for cls in type(model).__mro__:
        if plain in vars(cls) or with_set in vars(cls):
            return with_set in vars(cls)
    return False
