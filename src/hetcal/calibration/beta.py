"""Beta calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored.fields import numbers
from hetcal._typing import Matrix
from hetcal.calibration._shared import check_coefficients, check_non_negative, warn_unless
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Scores
from hetcal.kernels.binary_maps import (
    apply_one_vs_rest,
    fit_one_vs_rest,
    log_rest,
    smoothed_one_vs_rest,
)


@stored_map({"coef_": numbers(None, 2), "intercept_": numbers(None)})
class BetaCalibration(GlobalCalibrator):
    r"""Fit :math:`\operatorname{logit} q = a \log p - b \log(1 - p) + c` with a, b >= 0.

    Unlike Platt's sigmoid the map may bend differently at the two ends. It is the likelihood ratio
    of two beta distributions, contains the identity (a = b = 1, c = 0), and never reverses the
    ranking. With more than two classes each class is fitted against the rest and the rows are
    normalised; :class:`VectorScaling` is the map that treats all classes at once.

    Parameters
    ----------
    prior_mass : float, default=1.0
        How strongly each class leans on one beta map fitted to all classes together, in items.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    coef_ : ndarray of shape (K, 2), or (1, 2) with two classes
        a and b per class; with two classes those of the second.
    intercept_ : ndarray of shape (K,) or (1,)
        c.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    References
    ----------
    Kull, Silva Filho, Flach: Beyond sigmoids. Electronic Journal of Statistics, 2017.

    Examples
    --------
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9]]
    >>> calibrator = BetaCalibration().fit(None, [0, 0, 1, 0, 1], y_proba=y_proba)
    >>> bool((calibrator.coef_ >= 0).all())
    True
    """

    def __init__(self, *, prior_mass: float = 1.0, classes: Any = None):
        super().__init__(classes=classes)
        self.prior_mass = prior_mass

    def _check_restored(self) -> None:
        super()._check_restored()
        check_coefficients(self, "coef_", "intercept_", one_for_two=True)

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        maps = fit_one_vs_rest(
            _features(scores),
            smoothed_one_vs_rest(codes, scores.proba.shape[1], weight),
            weight,
            monotone=True,
            prior_mass=check_non_negative(self, "prior_mass"),
        )
        self.coef_ = np.array([fitted.slopes for fitted in maps])
        self.intercept_ = np.array([fitted.intercept for fitted in maps])
        warn_unless(all(fitted.converged for fitted in maps), self)

    def _apply_map(self, scores: Scores) -> Matrix:
        return apply_one_vs_rest(self.coef_, self.intercept_, _features(scores))


def _features(scores: Scores) -> Matrix:
    return np.stack([scores.log_proba, -log_rest(scores.log_proba)], axis=2)
