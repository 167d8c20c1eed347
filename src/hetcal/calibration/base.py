"""What every calibrator shares: checked input, the class order, and K columns out.

A calibrator maps a classifier's probabilities ``p`` to calibrated ones ``q``. It is fitted on
calibration items: features ``X`` (global maps ignore them), labels ``y``, and the classifier's
output on these items, either ``y_proba`` or ``logits``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hetcal._validation import (
    check_columns_match_classes,
    check_labels,
    check_logits,
    check_one_kind,
    check_proba,
    check_proba_names,
    check_same_rows,
    check_sample_weight,
    check_two_classes,
    warn_column_order,
    weights_as_counts,
)
from hetcal._validation.frames import TablesAsColumns
from hetcal.kernels.simplex import log_probabilities, zero_floor

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """A classifier's output, as probabilities and as their logarithms.

    ``log_proba`` comes straight from the logits where those were given, so it is not saturated;
    from probabilities it has a floor for hard zeros (:func:`hetcal.kernels.simplex.zero_floor`).
    """

    proba: Matrix
    log_proba: Matrix

    @classmethod
    def from_proba(cls, P: Matrix, floor: float) -> Scores:
        """Read probabilities; a hard zero counts as ``floor``."""
        return cls(P, log_probabilities(P, floor))

    @classmethod
    def from_logits(cls, logits: Matrix) -> Scores:
        """Read logits."""
        log_proba = log_softmax(logits, axis=1)
        return cls(np.exp(log_proba), log_proba)


class BaseCalibrator(TablesAsColumns, BaseEstimator, ABC):
    """Common ground of global and similarity-based calibrators.

    Parameters
    ----------
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``. Needed when a class is missing from the
        calibration labels, or when the columns are not in sorted order.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns of ``y_proba`` and of every output.
    """

    classes: Any
    uses_features: bool = True  # whether X matters, or may be None

    def _fit_scores(self, X: Any, y: Any, y_proba: Any, logits: Any) -> tuple[Scores, NDArray]:
        """Check the calibration items, set ``classes_``, return scores and label codes."""
        kind = check_one_kind(y_proba, logits, caller=type(self).__name__)
        if y is None:
            raise ValueError(
                f"{type(self).__name__}.fit requires y to be passed, but the target y is None. "
                "Pass the observed labels of the calibration items."
            )
        check_same_rows(X=X, y=y, **{kind: y_proba if kind == "y_proba" else logits})
        codes, classes = check_labels(y, self.classes)
        given = self.classes is not None
        if not given:
            check_two_classes(codes, classes)
        if kind == "y_proba":
            P = check_proba(y_proba)
            check_columns_match_classes(P.shape[1], classes, given=given)
            self.zero_floor_ = zero_floor(P)
            scores = Scores.from_proba(P, self.zero_floor_)
        else:
            L = check_logits(logits)
            check_columns_match_classes(L.shape[1], classes, name="logits", given=given)
            scores = Scores.from_logits(L)
        check_two_classes(codes, classes)
        output = y_proba if kind == "y_proba" else logits
        self.output_names_ = check_proba_names(output, classes, name=kind)
        warn_column_order(codes, scores.proba, classes, name=kind)
        self.classes_ = classes
        self.input_kind_ = kind
        return scores, codes

    def _require_features(self, X: Any) -> None:
        if X is None:
            raise ValueError(
                f"{type(self).__name__} compares items by their features; X is None. Pass X, or "
                "use a global method such as get_calibrator('temperature')."
            )

    def _new_scores(self, X: Any, y_proba: Any, logits: Any) -> Scores:
        """Check new items against what was seen at fit and return their scores."""
        check_is_fitted(self, "classes_")
        kind = check_one_kind(y_proba, logits, caller=type(self).__name__, fitted=self.input_kind_)
        output = y_proba if kind == "y_proba" else logits
        check_same_rows(X=X, **{kind: output})
        check_proba_names(output, self.classes_, name=kind, fitted=self.output_names_)
        if kind == "y_proba":
            P = check_proba(y_proba)
            check_columns_match_classes(P.shape[1], self.classes_, given=True)
            return Scores.from_proba(P, self.zero_floor_)
        L = check_logits(logits)
        check_columns_match_classes(L.shape[1], self.classes_, name="logits", given=True)
        return Scores.from_logits(L)


class GlobalCalibrator(BaseCalibrator):
    """A calibrator that looks at the probabilities alone: equal ``p`` always gives equal ``q``.

    Subclasses implement :meth:`_fit_map` and :meth:`_apply_map` on checked arrays.
    """

    uses_features = False

    def __init__(self, *, classes: Any = None):
        self.classes = classes

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn the map from calibration items.

        Parameters
        ----------
        X : array-like or None
            Ignored, may be None; here so that every calibrator is called alike.
        y : array-like of shape (n,)
            Observed labels.
        y_proba, logits : array-like of shape (n, K)
            The classifier's output on these items: exactly one of the two. Binary output may be a
            single column for the second class.
        sample_weight : array-like of shape (n,), optional
            How many items each row counts for: 2 is the row twice, 0 is not there. Weights with a
            mean below 1 (such as those that sum to one) are scaled to a mean of 1.

        Returns
        -------
        self
        """
        scores, codes = self._fit_scores(X, y, y_proba, logits)
        weight = check_sample_weight(sample_weight, codes.shape[0])
        check_two_classes(codes, self.classes_, weight)
        self._fit_map(scores, codes, weights_as_counts(weight))
        return self

    def predict_proba(self, X: Any = None, *, y_proba: Any = None, logits: Any = None) -> Matrix:
        """Return calibrated probabilities, one column per class of ``classes_``.

        Parameters
        ----------
        X : array-like or None
            Ignored.
        y_proba, logits : array-like of shape (n, K)
            The classifier's output on the new items, of the same kind as at fit.

        Returns
        -------
        Q : ndarray of shape (n, K)
        """
        return self._apply_map(self._new_scores(X, y_proba, logits))

    def predict(self, X: Any = None, *, y_proba: Any = None, logits: Any = None) -> NDArray:
        """Return the most probable class of each item after calibration."""
        Q = self.predict_proba(X, y_proba=y_proba, logits=logits)
        return self.classes_[Q.argmax(axis=1)]

    @abstractmethod
    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        """Learn the map; ``codes`` index ``classes_``, ``weight`` is never all zero."""

    @abstractmethod
    def _apply_map(self, scores: Scores) -> Matrix:
        """Return the mapped probabilities."""
