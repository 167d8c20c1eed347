"""Histogram binning."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored.fields import flag, list_of, numbers, probabilities
from hetcal._typing import Matrix
from hetcal.calibration._shared import check_non_negative, check_option, check_steps, step_scores
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Scores
from hetcal.kernels.histogram import (
    Histogram,
    apply_histogram,
    default_bin_number,
    fit_histogram,
    fit_run_histogram,
)
from hetcal.kernels.simplex import normalize_rows

_LARGEST_COUNT = 1e15


@stored_map(
    {"levels_": list_of(probabilities(None)), "edges_": list_of(numbers(None)), "normalize": flag}
)
class HistogramBinning(GlobalCalibrator):
    """Cut each class's score into bins of equal mass and return the frequency in the bin.

    The simplest map without a shape; isotonic calibration nearly always does better, because it
    chooses its own bins and keeps the ranking.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        Bins per class; "auto" is four times the cube root of the number of items. There are never
        more bins than distinct scores.
    score : {"log_odds", "proba"}, default="log_odds"
        The axis; log-odds tell apart probabilities that round to one.
    cut : {"values", "runs"}, default="values"
        Cut between distinct scores, or (as published) between items of the sorted list, where a run
        of ties may swallow several cuts.
    prior_mass : float, default=0.5
        Pseudo-items per bin with the overall frequency of the class; with 0 a bin can say 0 or 1.
        Not used with ``cut="runs"``.
    normalize : bool, default=True
        Scale the rows to one. The published experiments do not, and so return rows that sum to
        anything between 0.2 and 3.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    edges_, levels_ : list of ndarray
        For each class the inner edges of its bins, and the value of each bin (one more).
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    References
    ----------
    Zadrozny, Elkan: Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers. ICML 2001.

    Examples
    --------
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9], [0.2, 0.8]]
    >>> calibrator = HistogramBinning(n_bins=2).fit(None, [0, 0, 0, 1, 1, 1], y_proba=y_proba)
    >>> calibrator.predict_proba(y_proba=[[0.7, 0.3]]).round(3)
    array([[0.643, 0.357]])
    """

    def __init__(
        self,
        *,
        n_bins: int | str = "auto",
        score: str = "log_odds",
        cut: str = "values",
        prior_mass: float = 0.5,
        normalize: bool = True,
        classes: Any = None,
    ):
        super().__init__(classes=classes)
        self.n_bins = n_bins
        self.score = score
        self.cut = cut
        self.prior_mass = prior_mass
        self.normalize = normalize

    def _check_restored(self) -> None:
        super()._check_restored()
        check_steps(self, "edges_", 1)

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        S = self._read(scores)
        n_bins = self._number_of_bins(weight)
        prior_mass = check_non_negative(self, "prior_mass")
        by_runs = check_option(self, "cut", ("values", "runs")) == "runs"
        if by_runs:
            # One number for all classes: that of the class with the fewest distinct scores.
            used = S[weight > 0]
            n_bins = min(n_bins, *(np.unique(column).shape[0] for column in used.T))

        def fit_one(k: int) -> Histogram:
            target = (codes == k).astype(np.float64)
            if by_runs:
                return fit_run_histogram(S[:, k], target, weight, n_bins)
            return fit_histogram(S[:, k], target, weight, n_bins, prior_mass=prior_mass)

        histograms = [fit_one(k) for k in range(S.shape[1])]
        self.edges_ = [histogram.edges for histogram in histograms]
        self.levels_ = [histogram.levels for histogram in histograms]

    def _apply_map(self, scores: Scores) -> Matrix:
        S = self._read(scores)
        histograms = map(Histogram, self.edges_, self.levels_)
        columns = [apply_histogram(fitted, S[:, k]) for k, fitted in enumerate(histograms)]
        Q = np.column_stack(columns)
        return normalize_rows(Q, scores.proba) if self.normalize else Q

    def _read(self, scores: Scores) -> Matrix:
        return step_scores(scores, check_option(self, "score", ("log_odds", "proba")))

    def _number_of_bins(self, weight: Matrix) -> int:
        if isinstance(self.n_bins, str) and self.n_bins == "auto":
            # Enormous weights make a bin of every score; more bins than that change nothing.
            return default_bin_number(min(float(weight.sum()), _LARGEST_COUNT))
        if not isinstance(self.n_bins, Integral) or self.n_bins < 1:
            raise ValueError(
                f"HistogramBinning: n_bins must be 'auto' or an integer >= 1; got {self.n_bins!r}."
            )
        return int(self.n_bins)
