"""Matrix scaling with structured shrinkage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from hetcal._stored import expect
from hetcal._stored.fields import LARGEST, number, numbers
from hetcal._typing import Matrix
from hetcal.calibration._shared import check_coefficients, check_non_negative, warn_unless
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Scores
from hetcal.kernels.matrix_scaling import apply_matrix_map, fit_matrix_map
from hetcal.kernels.scaling import fit_softmax_map, fit_temperature, smoothed_targets

# Beyond, a full matrix takes minutes and learns nothing from thousands of items.
_MOST_CLASSES = 200
_LEAST_SPREAD = 0.2  # of the tempered log-probabilities


@stored_map({"scale_": number(0, LARGEST), "matrix_": numbers(None, None), "bias_": numbers(None)})
class MatrixScaling(GlobalCalibrator):
    r"""Let every class learn from all others: :math:`q \propto \exp(W \log p + b)`.

    After temperature scaling a matrix is fitted whose parts are shrunk separately: the deviations
    of the diagonal from its mean and the intercepts by K items each, the :math:`K (K - 1)` other
    entries by as many items. So a class that is taken for another one can be repaired, and with
    few items nothing is left but the temperature.

    Parameters
    ----------
    shrinkage : float, default=0.3
        Multiplies all three penalties; 1 gives those of the paper. More than 1000 gives
        temperature scaling, 0 a free matrix.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    scale_ : float
        The inverse temperature that comes first.
    matrix_ : ndarray of shape (K, K)
        W, applied to the logarithms of the tempered probabilities; with more than 200 classes a
        diagonal matrix.
    bias_ : ndarray of shape (K,)
        b.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach: Structured matrix scaling for multi-class calibration.
    AISTATS 2026.

    Examples
    --------
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3], [0.6, 0.4]]
    >>> calibrator = MatrixScaling().fit(None, [0, 1, 1, 1, 1], y_proba=y_proba)
    >>> calibrator.matrix_.shape
    (2, 2)
    """

    def __init__(self, *, shrinkage: float = 0.3, classes: Any = None):
        super().__init__(classes=classes)
        self.shrinkage = shrinkage

    def _check_restored(self) -> None:
        super()._check_restored()
        check_coefficients(self, "matrix_", "bias_")
        expect(self.matrix_.shape[1] == len(self.bias_), self, "has a matrix that is not square")

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        shrinkage = check_non_negative(self, "shrinkage")
        L = scores.log_proba
        K = L.shape[1]
        targets = smoothed_targets(codes, K, weight)
        # Where the ranking is no better than chance the temperature leaves nothing to learn from.
        spread = np.sqrt(weight @ np.var(L, axis=1) / weight.sum())
        least = _LEAST_SPREAD / max(float(spread), _LEAST_SPREAD)
        self.scale_ = max(float(fit_temperature(L, targets, weight).scale[0]), least)
        tempered = log_softmax(self.scale_ * L, axis=1)
        each = shrinkage * K
        if K > _MOST_CLASSES:
            diagonal = fit_softmax_map(
                tempered,
                targets,
                weight,
                per_class_scale=True,
                bias_penalty=each,
                scale_penalty=each,
            )
            self.matrix_, self.bias_ = np.diag(diagonal.scale), diagonal.bias
            warn_unless(diagonal.converged, self)
            return
        fitted = fit_matrix_map(
            tempered,
            targets,
            weight,
            diagonal_penalty=each,
            off_diagonal_penalty=each * (K - 1),
            bias_penalty=each,
        )
        self.matrix_, self.bias_ = fitted.matrix, fitted.bias
        warn_unless(fitted.converged, self)

    def _apply_map(self, scores: Scores) -> Matrix:
        tempered = log_softmax(self.scale_ * scores.log_proba, axis=1)
        return apply_matrix_map(tempered, self.matrix_, self.bias_)
