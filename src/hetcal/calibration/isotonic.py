"""Isotonic calibration with exact ties."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored.fields import list_of, numbers, probabilities
from hetcal._typing import Matrix
from hetcal.calibration._shared import check_non_negative, check_option, check_steps, step_scores
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Scores
from hetcal.kernels.isotonic_map import IsotonicMap, apply_isotonic_map, fit_isotonic_map
from hetcal.kernels.simplex import normalize_rows


@stored_map({"levels_": list_of(probabilities(None)), "thresholds_": list_of(numbers(None))})
class IsotonicCalibration(GlobalCalibrator):
    """Fit the best non-decreasing map of each class's score, then normalise the rows.

    No shape is assumed, so it repairs any monotone distortion, given enough items (some hundreds
    per class). Two scores are tied only when they are equal: the ranking of saturated probabilities
    (1e-17 against 1e-30) is kept.

    Parameters
    ----------
    score : {"log_odds", "proba"}, default="log_odds"
        The axis of the map. The fitted levels are the same on both, except that log-odds also tell
        apart probabilities that round to one, and that values between two calibration items are
        interpolated on this axis.
    pseudo_errors : float, default=0.5
        Weight of one imagined error at either end of each map. With 0 (as published) the ends are
        usually exactly 0 and 1.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    thresholds_, levels_ : list of ndarray
        For each class the scores at which its map bends, and its value there.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    Notes
    -----
    Where all K maps say zero (possible with ``pseudo_errors=0``), the classifier's own
    probabilities are returned.

    References
    ----------
    Zadrozny, Elkan: Transforming classifier scores into accurate multiclass probability estimates.
    KDD 2002.

    Examples
    --------
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9]]
    >>> calibrator = IsotonicCalibration(pseudo_errors=0)
    >>> calibrator = calibrator.fit(None, [0, 0, 0, 1, 1], y_proba=y_proba)
    >>> calibrator.predict_proba(y_proba=[[0.3, 0.7], [0.1, 0.9]])
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    def __init__(self, *, score: str = "log_odds", pseudo_errors: float = 0.5, classes: Any = None):
        super().__init__(classes=classes)
        self.score = score
        self.pseudo_errors = pseudo_errors

    def _check_restored(self) -> None:
        super()._check_restored()
        check_steps(self, "thresholds_", 0)

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        S = self._read(scores)
        pseudo_errors = check_non_negative(self, "pseudo_errors")
        maps = [
            fit_isotonic_map(
                S[:, k], (codes == k).astype(np.float64), weight, pseudo_errors=pseudo_errors
            )
            for k in range(S.shape[1])
        ]
        self.thresholds_ = [fitted.thresholds for fitted in maps]
        self.levels_ = [fitted.levels for fitted in maps]

    def _apply_map(self, scores: Scores) -> Matrix:
        S = self._read(scores)
        maps = map(IsotonicMap, self.thresholds_, self.levels_)
        columns = [apply_isotonic_map(fitted, S[:, k]) for k, fitted in enumerate(maps)]
        return normalize_rows(np.column_stack(columns), scores.proba)

    def _read(self, scores: Scores) -> Matrix:
        return step_scores(scores, check_option(self, "score", ("log_odds", "proba")))
