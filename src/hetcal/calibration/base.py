"""What every calibrator shares: checked input, the class order, and K columns out.

A calibrator maps a classifier's probabilities ``p`` to calibrated ones ``q``. It is fitted on
calibration items: features ``X`` (global maps ignore them), labels ``y``, and the classifier's
output on these items, either ``y_proba`` or ``logits``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hetcal._stored import expect, stored
from hetcal._stored.fields import Field, labels, list_of, number, one_of, optional, text
from hetcal._threads import ThreadSafe
from hetcal._typing import Matrix
from hetcal._validation import (
    PASS_LOGITS,
    check_columns_match_classes,
    check_logits,
    check_one_kind,
    check_proba,
    check_proba_names,
    check_same_rows,
    warn_large_counts,
)
from hetcal._validation.by_name import output_by_name
from hetcal._validation.frames import TablesAsColumns
from hetcal.data import CalibrationSet, Scores

#: What is stored of every calibrator: what new output is checked against.
STORED: dict[str, Field] = {
    "classes_": labels,
    "input_kind_": one_of("y_proba", "logits"),
    "output_names_": optional(list_of(text)),
    "zero_floor_": number(1e-300, 1),
}


def stored_map(fields: dict[str, Field] | None = None) -> Any:
    """Declare what is stored of a global map; one that a hybrid holds knows no output."""
    return stored(STORED | (fields or {}), may_lack=tuple(STORED))


class BaseCalibrator(ThreadSafe, TablesAsColumns, BaseEstimator, ABC):
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

    def fit_set(self, items: CalibrationSet) -> Self:
        """Fit to items that were checked already; our own :meth:`fit` checks, then calls this."""
        return self.fit(items.X, items.labels, **items.arguments)

    def predict_set(self, items: CalibrationSet) -> Matrix:
        """Return calibrated probabilities of items that were checked already."""
        return self.predict_proba(items.X, **{items.kind: items.output})

    def _checked(self, X: Any, y: Any, **named: Any) -> CalibrationSet:
        """Return the arguments of :meth:`fit` as a calibration set."""
        if self.uses_features:
            self._require_features(X)
        caller = f"{type(self).__name__}.fit"
        items = CalibrationSet.check(X, y, classes=self.classes, caller=caller, **named)
        if not self.uses_features:
            warn_large_counts(items.weight)
        return items

    def _remember(self, items: CalibrationSet) -> None:
        """Keep what new items are checked against."""
        if self.uses_features and not items.has_features:
            self._require_features(None)
        self.classes_ = items.classes
        self.input_kind_ = items.kind
        self.output_names_ = items.output_names
        if items.zero_floor is not None:
            self.zero_floor_ = items.zero_floor

    def _check_restored(self) -> None:
        names = getattr(self, "output_names_", None)
        named = names is None or len(names) == len(self.classes_)
        expect(named, self, "has names of other output")

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
            P = check_proba(y_proba, if_logits=PASS_LOGITS)
            check_columns_match_classes(P.shape[1], self.classes_, given=True)
            return Scores.from_proba(P, self.zero_floor_)
        L = check_logits(logits)
        check_columns_match_classes(L.shape[1], self.classes_, name="logits", given=True)
        return Scores.from_logits(L)

    def predict(self, X: Any = None, *, y_proba: Any = None, logits: Any = None) -> NDArray:
        """Return the most probable class of each item after calibration."""
        Q = self.predict_proba(X, y_proba=y_proba, logits=logits)
        return self.classes_[Q.argmax(axis=1)]


class GroupAwareCalibrator(BaseCalibrator):
    """A calibrator that keeps items of one group together; subclasses have their ``fit_set``."""

    @output_by_name
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Learn from calibration items.

        Parameters
        ----------
        X : array-like or table of shape (n, d)
            Features: numpy, pandas, polars; categorical columns are encoded, see the user guide.
            Global maps ignore them, and take None.
        y : array-like of shape (n,)
            Observed labels.
        y_proba, logits : array-like of shape (n, K)
            The classifier's output on these items: exactly one of the two.
        sample_weight : array-like of shape (n,), optional
            How much each item counts; see :ref:`weights`.
        groups : array-like of shape (n,) or (n, n_columns), optional
            Items of one group (one patient) stay together in the out-of-sample predictions.

        Returns
        -------
        self
        """
        return self.fit_set(
            self._checked(
                X, y, y_proba=y_proba, logits=logits, sample_weight=sample_weight, groups=groups
            )
        )


class GlobalCalibrator(BaseCalibrator):
    """A calibrator that looks at the probabilities alone: equal ``p`` always gives equal ``q``.

    Subclasses implement :meth:`_fit_map` and :meth:`_apply_map` on checked arrays.
    """

    uses_features = False

    def __init__(self, *, classes: Any = None):
        self.classes = classes

    @output_by_name
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
            mean below 1 (such as those that sum to one) are scaled to a mean of 1, and a warning
            asks about a mean above 10; see :ref:`weights`.

        Returns
        -------
        self
        """
        return self.fit_set(
            self._checked(X, y, y_proba=y_proba, logits=logits, sample_weight=sample_weight)
        )

    def fit_set(self, items: CalibrationSet) -> Self:
        """Fit to items that were checked already."""
        self._remember(items)
        self._fit_items(items)
        return self

    def _fit_items(self, items: CalibrationSet) -> None:
        """Learn the map; for maps that need more than scores, labels and weights."""
        self._fit_map(items.scores, items.codes, items.counts)

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

    def predict_set(self, items: CalibrationSet) -> Matrix:
        """Return calibrated probabilities of items that were checked already."""
        return self._apply_map(items.scores)

    @abstractmethod
    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        """Learn the map; ``codes`` index ``classes_``, ``weight`` is never all zero."""

    @abstractmethod
    def _apply_map(self, scores: Scores) -> Matrix:
        """Return the mapped probabilities."""
