"""What a calibrated classifier refuses, warns of, and makes of its input."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from hetcal._exceptions import RefitWarning, levels_to_caller
from hetcal._validation.containers import as_frame, masked_as_missing
from hetcal.calibration.base import BaseCalibrator


def as_input(X: Any) -> Any:
    """Return tables and arrays as they are, sparse matrices by rows, all else as an array.

    Masked values are missing ones, which scikit-learn's models would take for known.
    """
    if sparse.issparse(X):
        return X.tocsr()
    X = masked_as_missing(X)
    if as_frame(X) is not None or isinstance(X, np.ndarray):
        return X
    return np.asarray(X)


def with_hints(init: Callable[..., None]) -> Callable[..., None]:
    """Let ``__init__`` say what arguments of CalibratedClassifierCV are called here."""
    hints = {
        "method": "Name the method as calibrator: LocallyCalibratedClassifier(model, 'platt') is "
        "method='sigmoid'.",
        "ensemble": "One model is fitted to all rows, as with ensemble=False. Leave it out.",
        "base_estimator": "Pass the classifier as estimator.",
    }

    @wraps(init)
    def hinting(self: Any, *args: Any, **named: Any) -> None:
        for name in hints.keys() & named.keys():
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}. "
                f"{hints[name]}"
            )
        init(self, *args, **named)

    return hinting


def refuse_what_is_no_estimator(given: Any, calibrator: Any) -> None:
    """Raise for classifiers that scikit-learn cannot handle, before its own nested errors."""
    model = given.estimator if isinstance(given, FrozenEstimator) else given
    try:
        get_tags(model)
    except AttributeError as error:
        name = calibrator if isinstance(calibrator, str) else "hybrid"
        raise TypeError(
            f"LocallyCalibratedClassifier: {type(model).__name__} is no scikit-learn estimator. If "
            "it is fitted, calibrate what it says instead: "
            f"hetcal.get_calibrator({name!r}).fit(X, y, y_proba=...). Or let its class inherit "
            "from sklearn.base.ClassifierMixin and BaseEstimator."
        ) from error


def refuse_regressor(estimator: Any) -> None:
    """Raise for what predicts numbers, before its own error about labels that are none."""
    if is_regressor(estimator):
        raise TypeError(
            f"{type(estimator).__name__} is a regressor; LocallyCalibratedClassifier calibrates "
            "the probabilities of a classifier. Pass one."
        )


def refuse_texts(X: Any, calibrator: Any) -> None:
    """Raise for texts that the calibrator, unlike the classifier, cannot make features of."""
    texts = isinstance(X, np.ndarray) and X.ndim == 1 and X.size and isinstance(X[0], str)
    if texts and isinstance(calibrator, BaseCalibrator):
        raise ValueError(
            "LocallyCalibratedClassifier: what items are compared by must be numbers, and X holds "
            f"{len(X)} texts such as {X[0][:60]!r}. Pass features=FrozenEstimator(make_pipeline("
            "TfidfVectorizer(), TruncatedSVD(50)).fit(training_texts)), or a calibrator that needs "
            "no features, such as 'temperature'."
        )


def refuse_unknown_labels(seen: NDArray, classes: NDArray) -> None:
    """Raise for labels that a classifier which is not fitted here has never seen."""
    unknown = [label for label in seen.tolist() if label not in set(classes.tolist())]
    if unknown:
        raise ValueError(
            f"LocallyCalibratedClassifier: y holds labels that are not in classes: {unknown[:10]}; "
            f"the classifier knows {classes.tolist()[:10]}. Pass y as it was trained with."
        )


def warn_of_refit(given: Any, cloned: Any, name: str) -> None:
    """Warn where what was learned before is about to be forgotten."""
    if _forgets(given, cloned):
        warnings.warn(
            f"{type(given).__name__} is fitted already and is fitted again on these rows. To use "
            f"it as it is, freeze it: FrozenEstimator({name}), from sklearn.frozen. To fit it "
            f"here, pass clone({name}).",
            RefitWarning,
            stacklevel=levels_to_caller(),
        )
        return
    # A pipeline is as fitted as its last step; others may have learned from more than these rows.
    steps = zip(getattr(given, "steps", ()), getattr(cloned, "steps", ()), strict=True)
    fitted = [step for (step, one), (_, other) in steps if _forgets(one, other)]
    if fitted:
        named = ", ".join(map(repr, fitted))
        warnings.warn(
            f"{type(given).__name__}: {named} of its steps {'is' if len(fitted) == 1 else 'are'} "
            "fitted already and fitted again on these rows. To use what was learned, freeze the "
            f"step, FrozenEstimator(step), from sklearn.frozen. To fit all here, pass "
            f"clone({name}).",
            RefitWarning,
            stacklevel=levels_to_caller(),
        )


def _forgets(given: Any, cloned: Any) -> bool:
    """Return whether fitting the clone loses what was learned."""
    return _seems_fitted(given) and not _seems_fitted(cloned)


def _seems_fitted(estimator: Any) -> bool:
    """Return whether scikit-learn takes the estimator for fitted.

    Some always are, because they learn nothing or hold a frozen model: a clone tells them apart.
    """
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError, AttributeError):
        return False
    return True
