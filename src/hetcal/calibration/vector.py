"""Vector scaling: a slope and a bias per class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored.fields import numbers
from hetcal._typing import Matrix
from hetcal.calibration._shared import check_coefficients, check_non_negative, warn_unless
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Scores
from hetcal.kernels.scaling import apply_softmax_map, fit_softmax_map, smoothed_targets


@stored_map({"scale_": numbers(None), "bias_": numbers(None)})
class VectorScaling(GlobalCalibrator):
    r"""Give every class its own sharpness and bias: :math:`q_k \propto p_k^{s_k} e^{b_k}`.

    On log-probabilities this is the diagonal form of Dirichlet calibration; with two classes it is
    the beta map. A ridge pulls it towards temperature scaling, so that it can be used with many
    classes and few items.

    Parameters
    ----------
    bias_penalty : float, default=2.0
        Ridge on the biases, on the total log loss, in units of items.
    scale_penalty : float, default=5.0
        Ridge on the differences of the scales from their mean, in units of items and of the spread
        of the log-probabilities. A large value gives bias-corrected temperature scaling.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    scale_ : ndarray of shape (K,)
        One s per class, never negative.
    bias_ : ndarray of shape (K,)
        One b per class.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger: On calibration of modern neural networks. ICML 2017.
    Kull et al.: Beyond temperature scaling. NeurIPS 2019.

    Examples
    --------
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3], [0.6, 0.4]]
    >>> calibrator = VectorScaling().fit(None, [0, 1, 1, 1, 1], y_proba=y_proba)
    >>> calibrator.scale_.shape
    (2,)
    """

    def __init__(
        self, *, bias_penalty: float = 2.0, scale_penalty: float = 5.0, classes: Any = None
    ):
        super().__init__(classes=classes)
        self.bias_penalty = bias_penalty
        self.scale_penalty = scale_penalty

    def _check_restored(self) -> None:
        super()._check_restored()
        check_coefficients(self, "scale_", "bias_")

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        fitted = fit_softmax_map(
            scores.log_proba,
            smoothed_targets(codes, scores.log_proba.shape[1], weight),
            weight,
            per_class_scale=True,
            bias_penalty=check_non_negative(self, "bias_penalty"),
            scale_penalty=check_non_negative(self, "scale_penalty"),
        )
        self.scale_, self.bias_ = fitted.scale, fitted.bias
        warn_unless(fitted.converged, self)

    def _apply_map(self, scores: Scores) -> Matrix:
        return apply_softmax_map(scores.log_proba, self.scale_, self.bias_)
