"""Platt scaling: a sigmoid of one score per class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored.fields import numbers
from hetcal._typing import Matrix
from hetcal.calibration._shared import (
    check_coefficients,
    check_non_negative,
    check_option,
    warn_unless,
)
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Scores
from hetcal.kernels.binary_maps import (
    apply_one_vs_rest,
    class_log_odds,
    fit_one_vs_rest,
    platt_targets,
    smoothed_one_vs_rest,
)


@stored_map({"slope_": numbers(None), "intercept_": numbers(None)})
class PlattScaling(GlobalCalibrator):
    r"""Fit a sigmoid to the score of a class: :math:`q = \sigma(A s + B)`.

    With more than two classes each class is fitted against the rest and the rows are normalised.

    Parameters
    ----------
    score : {"log_odds", "proba"}, default="log_odds"
        The score s. A sigmoid of the log-odds contains the identity, so a classifier that is
        calibrated already stays as it is; a sigmoid of the probability (as published) does not.
    targets : {"smoothed", "platt"}, default="smoothed"
        Soft labels: one pseudo-error over the whole calibration set, or Platt's, which count one
        pseudo-item per class and cost much where a class is rare.
    monotone : bool, default=True
        Never reverse the classifier's ranking: A >= 0. A classifier that ranks worse than chance
        then gets the frequencies of the classes.
    prior_mass : float, default=1.0
        How strongly each class leans on one sigmoid fitted to all classes together, in items.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    slope_, intercept_ : ndarray of shape (K,), or (1,) with two classes
        A and B per class; with two classes those of the second.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    References
    ----------
    Platt: Probabilistic outputs for support vector machines. 1999.

    Examples
    --------
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9]]
    >>> calibrator = PlattScaling().fit(None, [0, 0, 1, 0, 1], y_proba=y_proba)
    >>> calibrator.predict_proba(y_proba=[[0.5, 0.5]]).round(2)
    array([[0.53, 0.47]])
    """

    def __init__(
        self,
        *,
        score: str = "log_odds",
        targets: str = "smoothed",
        monotone: bool = True,
        prior_mass: float = 1.0,
        classes: Any = None,
    ):
        super().__init__(classes=classes)
        self.score = score
        self.targets = targets
        self.monotone = monotone
        self.prior_mass = prior_mass

    def _check_restored(self) -> None:
        super()._check_restored()
        check_coefficients(self, "slope_", "intercept_", one_for_two=True)

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        maps = fit_one_vs_rest(
            self._features(scores),
            self._targets(codes, scores.proba.shape[1], weight),
            weight,
            monotone=self.monotone,
            prior_mass=check_non_negative(self, "prior_mass"),
        )
        self.slope_ = np.array([fitted.slopes[0] for fitted in maps])
        self.intercept_ = np.array([fitted.intercept for fitted in maps])
        warn_unless(all(fitted.converged for fitted in maps), self)

    def _apply_map(self, scores: Scores) -> Matrix:
        return apply_one_vs_rest(self.slope_[:, None], self.intercept_, self._features(scores))

    def _features(self, scores: Scores) -> Matrix:
        kind = check_option(self, "score", ("log_odds", "proba"))
        S = scores.proba if kind == "proba" else class_log_odds(scores.log_proba)
        return S[:, :, None]

    def _targets(self, codes: NDArray[np.int64], n_classes: int, weight: Matrix) -> Matrix:
        if check_option(self, "targets", ("smoothed", "platt")) == "platt":
            columns = [platt_targets(codes == k, weight) for k in range(n_classes)]
            return np.column_stack(columns)
        return smoothed_one_vs_rest(codes, n_classes, weight)
