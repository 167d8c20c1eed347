"""Calibrated probabilities under which no decision changes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from hetcal._threads import on_snapshot
from hetcal._validation import check_groups, check_sample_weight
from hetcal.calibration.base import BaseCalibrator, Matrix, Scores
from hetcal.calibration.hybrid.problem import make_folds
from hetcal.kernels.preserve import keep_top

_N_FOLDS = 5


def _inner_has(name: str):
    def check(self: LabelPreserving) -> bool:
        return hasattr(getattr(self, "calibrator_", self.calibrator), name)

    return check


class LabelPreserving(BaseCalibrator):
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
        Brier score with decisions preserved minus Brier score without, on honest predictions of
        the calibration items: positive where changing decisions would have been better. NaN where
        the calibration items are too few to hold some of them out.
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
        return self.calibrator.uses_features

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
        """Fit the calibrator and measure what keeping the decisions costs.

        Parameters
        ----------
        X, y, y_proba, logits, sample_weight, groups
            As in :meth:`hetcal.SimilarityCalibrator.fit`. Calibrators that have no use for
            ``groups`` are fitted without; the price is measured with groups kept together.
        """
        scores, codes = self._fit_scores(X, y, y_proba, logits)
        weight = check_sample_weight(sample_weight, codes.shape[0])
        group_codes = check_groups(groups, codes.shape[0])
        given = {"y": y, self.input_kind_: y_proba if self.input_kind_ == "y_proba" else logits}
        if sample_weight is not None:
            given["sample_weight"] = weight
        if groups is not None and has_fit_parameter(self.calibrator, "groups"):
            given["groups"] = groups
        self.calibrator_ = self._fitted(X, given)
        honest = getattr(self.calibrator_, "out_of_sample_proba_", None)
        if honest is None:
            folds = make_folds(codes, group_codes, _N_FOLDS, seed=0)
            honest = self._cross_fitted(X, given, codes, folds)
        self._set_price(honest, scores, codes, weight, group_codes)
        return self

    def predict_proba(
        self, X: Any = None, *, y_proba: Any = None, logits: Any = None, **options: Any
    ) -> Any:
        """Return calibrated probabilities with the classifier's choice on top.

        Parameters
        ----------
        X, y_proba, logits, **options
            As the calibrator's own.
        """
        top = self._top(self._new_scores(X, y_proba, logits))
        said = self.calibrator_.predict_proba(X, y_proba=y_proba, logits=logits, **options)
        if isinstance(said, tuple):
            return (keep_top(said[0], top), *said[1:])
        return keep_top(said, top)

    def predict(self, X: Any = None, *, y_proba: Any = None, logits: Any = None) -> NDArray:
        """Return the classifier's choice, which is still the most probable class."""
        return self.classes_[self._top(self._new_scores(X, y_proba, logits))]

    @property
    def out_of_sample_proba_(self) -> Matrix:
        """An honest prediction for every calibration item, where the calibrator has one."""
        return keep_top(self.calibrator_.out_of_sample_proba_, self.top_)

    @available_if(_inner_has("support"))
    @on_snapshot
    def support(self, X: Any, **options: Any) -> Any:
        """Return how much calibration data stands behind each item; as the calibrator's."""
        return self.calibrator_.support(X, **options)

    @available_if(_inner_has("effective_sample_size"))
    @on_snapshot
    def effective_sample_size(self, X: Any, **options: Any) -> Any:
        """Return how many equal votes each item's vote is worth; as the calibrator's."""
        return self.calibrator_.effective_sample_size(X, **options)

    @available_if(_inner_has("evidence"))
    @on_snapshot
    def evidence(self, X: Any, **options: Any) -> Any:
        """Return the calibration items that voted for each item; as the calibrator's."""
        return self.calibrator_.evidence(X, **options)

    def _fitted(self, X: Any, given: dict[str, Any]) -> BaseCalibrator:
        calibrator: Any = clone(self.calibrator).set_params(classes=self.classes_)
        return calibrator.fit(X, **given)

    def _cross_fitted(
        self, X: Any, given: dict[str, Any], codes: NDArray[np.int64], folds: NDArray[np.int64]
    ) -> Matrix:
        """Return predictions by calibrators that have not seen the item; NaN where none can be."""
        honest = np.full((codes.shape[0], self.classes_.shape[0]), np.nan)
        kind = self.input_kind_
        for fold in np.unique(folds):
            out = np.flatnonzero(folds == fold)
            rest = np.flatnonzero(folds != fold)
            if np.unique(codes[rest]).shape[0] < 2:
                continue
            part = {name: _safe_indexing(value, rest) for name, value in given.items()}
            fitted: Any = self._fitted(_rows(X, rest), part)
            new = {kind: _safe_indexing(given[kind], out)}
            honest[out] = fitted.predict_proba(_rows(X, out), **new)
        return honest

    def _set_price(
        self,
        honest: Matrix,
        scores: Scores,
        codes: NDArray[np.int64],
        weight: Matrix,
        groups: NDArray[np.int64] | None,
    ) -> None:
        self.top_ = self._top(scores)
        truth = np.eye(self.classes_.shape[0])[codes]
        kept = keep_top(honest, self.top_)
        loss = ((kept - truth) ** 2).sum(axis=1) - ((honest - truth) ** 2).sum(axis=1)
        known = ~np.isnan(loss)
        share = weight * known / max(weight[known].sum(), np.finfo(float).tiny)
        loss = np.where(known, loss, 0.0)
        self.price_ = float(share @ loss) if known.any() else float("nan")
        deviations = share * (loss - self.price_)
        if groups is not None:  # items of one group are not independent
            deviations = np.bincount(groups, deviations)
        self.price_error_ = float(np.sqrt(deviations @ deviations))
        self.changed_ = float(share @ (honest.argmax(axis=1) != self.top_))

    @staticmethod
    def _top(scores: Scores) -> NDArray[np.int64]:
        return scores.proba.argmax(axis=1)


def _rows(X: Any, rows: NDArray[np.int64]) -> Any:
    return None if X is None else _safe_indexing(X, rows)
