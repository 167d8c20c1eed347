"""The map that changes nothing: the baseline of every comparison."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Scores


@stored_map()
class Uncalibrated(GlobalCalibrator):
    """Return the classifier's probabilities as they came (the softmax of logits).

    Parameters
    ----------
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    Examples
    --------
    >>> calibrator = Uncalibrated().fit(None, [0, 1], y_proba=[[0.9, 0.1], [0.4, 0.6]])
    >>> calibrator.predict_proba(y_proba=[[0.2, 0.8]])
    array([[0.2, 0.8]])
    """

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        return

    def _apply_map(self, scores: Scores) -> Matrix:
        return scores.proba.copy()
