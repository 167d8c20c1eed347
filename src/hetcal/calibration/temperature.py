"""Temperature scaling, with and without class biases."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored.fields import LARGEST, number, numbers
from hetcal._typing import Matrix
from hetcal.calibration._shared import (
    check_coefficients,
    check_non_negative,
    check_option,
    warn_unless,
)
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Scores
from hetcal.kernels.scaling import (
    apply_softmax_map,
    fit_softmax_map,
    fit_temperature,
    hard_targets,
    smoothed_targets,
)

# The published experiments cut probabilities here before they take log p - log(1 - p).
PAPER_EPS = 1e-7


@stored_map({"inverse_temperature_": number(0, LARGEST)})
class TemperatureScaling(GlobalCalibrator):
    r"""Sharpen or flatten all probabilities by one number: :math:`q_k \propto p_k^{1/T}`.

    The temperature minimises the log loss on the calibration items. One parameter needs few items
    and never changes which class is the most probable, but it cannot repair a classifier that
    favours a class, nor one whose error depends on more than its confidence.

    Parameters
    ----------
    score : {"log_proba", "log_odds"}, default="log_proba"
        What is divided by T: log p, or log p - log(1 - p) with p cut to [1e-7, 1 - 1e-7], as in the
        published experiments (with two classes that doubles T; with more it is another map).
        Logits are used as they are in both cases.
    smoothing : bool, default=True
        Count one pseudo-error over the whole calibration set, so that a set without errors gives a
        finite temperature.
    bounds : tuple of float, optional
        Least and largest temperature; the published experiments use (0.05, 5).
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    temperature_ : float
        T; above 1 the classifier was over-confident. Infinite (q uniform) where its ranking is no
        better than chance.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger: On calibration of modern neural networks. ICML 2017.

    Examples
    --------
    >>> y_proba = [[0.99, 0.01], [0.98, 0.02], [0.01, 0.99], [0.97, 0.03], [0.02, 0.98]]
    >>> calibrator = TemperatureScaling().fit(None, [0, 0, 1, 1, 1], y_proba=y_proba)
    >>> calibrator.temperature_ > 1
    True
    >>> calibrator.predict_proba(y_proba=[[0.99, 0.01]]).round(2)
    array([[0.76, 0.24]])
    """

    def __init__(
        self,
        *,
        score: str = "log_proba",
        smoothing: bool = True,
        bounds: tuple[float, float] | None = None,
        classes: Any = None,
    ):
        super().__init__(classes=classes)
        self.score = score
        self.smoothing = smoothing
        self.bounds = bounds

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        lower, upper = self._inverse_bounds()
        L = self._read(scores)
        K = L.shape[1]
        targets = smoothed_targets(codes, K, weight) if self.smoothing else hard_targets(codes, K)
        fitted = fit_temperature(L, targets, weight, lower=lower, upper=upper)
        self.inverse_temperature_ = float(fitted.scale[0])
        warn_unless(fitted.converged, self)

    def _apply_map(self, scores: Scores) -> Matrix:
        L = self._read(scores)
        K = L.shape[1]
        return apply_softmax_map(L, np.full(K, self.inverse_temperature_), np.zeros(K))

    @property
    def temperature_(self) -> float:
        """The fitted temperature."""
        inverse = self.inverse_temperature_
        return 1.0 / inverse if inverse > 0 else float("inf")

    def _read(self, scores: Scores) -> Matrix:
        kind = check_option(self, "score", ("log_proba", "log_odds"))
        if kind == "log_proba" or self.input_kind_ == "logits":
            return scores.log_proba
        P = np.clip(scores.proba, PAPER_EPS, 1 - PAPER_EPS)
        return np.log(P) - np.log(1 - P)

    def _inverse_bounds(self) -> tuple[float, float]:
        if self.bounds is None:
            return 0.0, np.inf
        low, high = self.bounds
        if not 0 < low <= high:
            raise ValueError(
                "TemperatureScaling: bounds must be two temperatures 0 < low <= high; "
                f"got {self.bounds!r}."
            )
        return 1.0 / high, 1.0 / low


@stored_map({"scale_": number(), "bias_": numbers(None)})
class BiasCorrectedTemperatureScaling(GlobalCalibrator):
    r"""Temperature scaling with one bias per class: :math:`q_k \propto p_k^{a} e^{b_k}`.

    The biases repair a classifier that favours some classes, for example because they were more
    frequent in training than they are now.

    Parameters
    ----------
    bias_penalty : float, default=2.0
        :math:`\lambda` of the ridge :math:`\lambda \|b\|^2` on the total log loss, in units of
        items: 0 leaves the biases free, a large value gives temperature scaling.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    scale_ : float
        The inverse temperature a.
    bias_ : ndarray of shape (K,)
        One b per class.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    References
    ----------
    Alexandari, Kundaje, Shrikumar: Maximum likelihood with bias-corrected calibration is
    hard-to-beat at label shift adaptation. ICML 2020.

    Examples
    --------
    >>> calibrator = BiasCorrectedTemperatureScaling()
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3], [0.6, 0.4]]
    >>> calibrator = calibrator.fit(None, [0, 1, 1, 1, 1], y_proba=y_proba)
    >>> bool(calibrator.bias_[1] > calibrator.bias_[0])
    True
    """

    def __init__(self, *, bias_penalty: float = 2.0, classes: Any = None):
        super().__init__(classes=classes)
        self.bias_penalty = bias_penalty

    def _check_restored(self) -> None:
        super()._check_restored()
        check_coefficients(self, "bias_")

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        fitted = fit_softmax_map(
            scores.log_proba,
            smoothed_targets(codes, scores.log_proba.shape[1], weight),
            weight,
            per_class_scale=False,
            bias_penalty=check_non_negative(self, "bias_penalty"),
        )
        self.scale_, self.bias_ = float(fitted.scale[0]), fitted.bias
        warn_unless(fitted.converged, self)

    def _apply_map(self, scores: Scores) -> Matrix:
        scale = np.full(self.bias_.shape, self.scale_)
        return apply_softmax_map(scores.log_proba, scale, self.bias_)
