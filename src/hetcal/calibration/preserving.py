"""Calibrated probabilities under which no decision changes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect, stored
from hetcal._stored.fields import MOST_CLASSES, in_range, instance, integers, number
from hetcal._typing import Matrix
from hetcal.calibration.base import STORED, BaseCalibrator, GroupAwareCalibrator
from hetcal.calibration.delegated_methods import DelegatedMethods
from hetcal.calibration.fitting import checked_proba, fitted_to, out_of_sample_proba
from hetcal.data import CalibrationSet, Scores
from hetcal.kernels.preserve import keep_top
from hetcal.metrics.scores import brier_losses
from hetcal.metrics.standard_errors import mean_and_error


@stored(
    STORED
    | {
        "calibrator": instance(BaseCalibrator),
        "calibrator_": instance(BaseCalibrator, "classes_", "input_kind_"),
        "top_": integers(None, low=0, high=MOST_CLASSES),
        "changed_": number(0, 1 + 1e-9),
        "price_": number(may_miss=True),
        "price_error_": number(may_miss=True),
    },
    may_lack=("zero_floor_",),
)
class LabelPreserving(DelegatedMethods, GroupAwareCalibrator):
    """Any calibrator, kept from changing the classifier's decisions.

    Where the calibrated row would put another class on top than the classifier did, it is replaced
    by the nearest row (in the sum of squares) that does not: the classes above the classifier's
    choice and the choice itself share their mean. Decisions, and so accuracy, stay as they were,
    for a price in Brier score that :attr:`price_` states. ``get_calibrator(name,
    preserve="label")`` and ``LocallyCalibratedClassifier(..., preserve="label")`` build it.

    Parameters
    ----------
    calibrator : calibrator
        What calibrates; it is cloned.
    classes : array-like, optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    calibrator_ : calibrator
        The fitted calibrator.
    price_ : float
        Brier score with decisions preserved minus Brier score without, on out-of-sample predictions
        of the calibration items (groups kept together, also where the calibrator has no use for
        them): positive where changing decisions would have been better. NaN where the calibration
        items are too few to hold some of them out.
    price_error_ : float
        Its standard error.
    changed_ : float
        Share of the calibration items whose decision the calibrator would have changed.

    Examples
    --------
    >>> from hetcal import IsotonicCalibration
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(400, heterogeneity=1.0, random_state=0)
    >>> keeps = LabelPreserving(IsotonicCalibration()).fit(None, data.y, y_proba=data.y_proba)
    >>> Q = keeps.predict_proba(y_proba=data.y_proba)
    >>> bool((Q.argmax(axis=1) == data.y_proba.argmax(axis=1)).all())
    True
    """

    def __init__(self, calibrator: BaseCalibrator, *, classes: Any = None):
        self.calibrator = calibrator
        self.classes = classes

    @property
    def uses_features(self) -> bool:  # type: ignore[override]
        """Whether the calibrator looks at features."""
        return getattr(self.calibrator, "uses_features", True)

    def fit_set(self, items: CalibrationSet) -> Self:
        """Fit to items that were checked already."""
        self._remember(items)
        self.calibrator_ = fitted_to(self.calibrator, items)
        self._set_price(out_of_sample_proba(self.calibrator_, items), items)
        return self

    def _check_restored(self) -> None:
        super()._check_restored()
        inner = self.calibrator_
        same = np.array_equal(inner.classes_, self.classes_)
        expect(same, self, "has a calibrator of other classes")
        expect(inner.input_kind_ == self.input_kind_, self, "reads other input")
        expect(in_range(self.top_, 0, len(self.classes_)), self, "has odd labels")

    def predict_proba(
        self, X: Any = None, *, y_proba: Any = None, logits: Any = None, **options: Any
    ) -> Any:
        """Return calibrated probabilities with the classifier's choice on top.

        Parameters
        ----------
        X, y_proba, logits, **options
            As the calibrator's own.
        """
        scores = self._new_scores(X, y_proba, logits)
        given = y_proba if self.input_kind_ == "y_proba" else logits
        said = self.calibrator_.predict_proba(X, **{self.input_kind_: given}, **options)
        Q, *beside = said if isinstance(said, tuple) else (said,)
        kept = keep_top(checked_proba(self.calibrator_, Q, scores.proba.shape), self._top(scores))
        return (kept, *beside) if beside else kept

    def predict(self, X: Any = None, *, y_proba: Any = None, logits: Any = None) -> NDArray:
        """Return the classifier's choice, which is still the most probable class."""
        return self.classes_[self._top(self._new_scores(X, y_proba, logits))]

    @property
    def out_of_sample_proba_(self) -> Matrix:
        """An out-of-sample prediction for every calibration item, where the calibrator has one."""
        return keep_top(self.calibrator_.out_of_sample_proba_, self.top_)

    def _calibrator(self) -> Any:
        return getattr(self, "calibrator_", self.calibrator)

    def _for_calibrator(self, X: Any) -> tuple[Any, dict[str, Any]]:
        return X, {}

    def _set_price(self, predicted: Matrix, items: CalibrationSet) -> None:
        self.top_ = self._top(items.scores)
        kept = keep_top(predicted, self.top_)
        loss = brier_losses(kept, items.codes) - brier_losses(predicted, items.codes)
        known = ~np.isnan(loss) & (items.weights > 0)
        self.price_ = self.price_error_ = self.changed_ = float("nan")
        if known.any():
            scored, kept = items.take(known), predicted[known]
            price, error = mean_and_error(loss[known], scored.weight, scored.groups)
            changed = (kept.argmax(axis=1) != self.top_[known]).astype(np.float64)
            self.price_, self.price_error_ = float(price), float(error)
            self.changed_ = float(np.average(changed, weights=scored.weight))

    @staticmethod
    def _top(scores: Scores) -> NDArray[np.int64]:
        return scores.proba.argmax(axis=1)
