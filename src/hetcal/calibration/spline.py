"""Monotone splines of the log-odds; with two knots a quadratic map."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from hetcal._stored import expect
from hetcal._stored.fields import LARGEST, number, numbers, rising
from hetcal._typing import Matrix, Vector
from hetcal.calibration._shared import check_coefficients, check_non_negative, warn_unless
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Scores
from hetcal.kernels.binary_maps import class_log_odds
from hetcal.kernels.scaling import fit_temperature, smoothed_targets
from hetcal.kernels.shared_maps import fit_shared_map, ramps, weighted_knots

# Share of the items beyond the outer knots on either side, where the slope stays as it is.
_BEYOND = 0.02


@stored_map(
    {
        "scale_": number(0, LARGEST),
        "knots_": numbers(None),
        "slopes_": numbers(None),
        "bias_": numbers(None),
    }
)
class SplineCalibration(GlobalCalibrator):
    r"""Bend the log-odds by one increasing function whose slope is a broken line.

    With two classes :math:`\operatorname{logit} q = f(\operatorname{logit} p) + b`, with more
    :math:`q_k \propto \exp(f(\log p_k) + b_k)` with one f for all. The knots lie at quantiles;
    beyond the outer ones f is straight. Penalties pull f towards a temperature and b towards none.
    Two knots give a quadratic map that never reverses the ranking, ``get_calibrator("quadratic")``.

    Parameters
    ----------
    n_knots : int, default=6
        Knots, at most; 2 or more.
    roughness : float, default=1.0
        Penalty on the differences of neighbouring slopes, in units of items and of the spread of
        the scores.
    bias_penalty : float, default=0.5
        Penalty on the biases, in items.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    scale_ : float
        The inverse temperature that comes first.
    knots_, slopes_ : ndarray of shape (M,)
        Where the slope of f bends, and its value there.
    bias_ : ndarray of shape (K,)
        One b per class.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    Examples
    --------
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9]]
    >>> calibrator = SplineCalibration().fit(None, [0, 0, 1, 0, 1], y_proba=y_proba)
    >>> bool((calibrator.slopes_ >= 0).all())
    True
    """

    def __init__(
        self,
        *,
        n_knots: int = 6,
        roughness: float = 1.0,
        bias_penalty: float = 0.5,
        classes: Any = None,
    ):
        super().__init__(classes=classes)
        self.n_knots = n_knots
        self.roughness = roughness
        self.bias_penalty = bias_penalty

    def _check_restored(self) -> None:
        super()._check_restored()
        check_coefficients(self, "bias_")
        expect(len(self.slopes_) == len(self.knots_) > 0, self, "has not one slope per knot")
        expect(rising(self.knots_, strictly=True), self, "has knots out of order")

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        K = scores.proba.shape[1]
        targets = smoothed_targets(codes, K, weight)
        self.scale_ = float(fit_temperature(scores.log_proba, targets, weight).scale[0])
        x = self._read(scores)
        self.knots_ = _knots(x, weight, self._number_of_knots())
        fitted = fit_shared_map(
            self._features(x),
            targets,
            weight,
            roughness=check_non_negative(self, "roughness"),
            bias_penalty=check_non_negative(self, "bias_penalty"),
        )
        self.slopes_, self.bias_ = fitted.slopes, fitted.bias
        warn_unless(fitted.converged, self)

    def _apply_map(self, scores: Scores) -> Matrix:
        Z = np.tensordot(self.slopes_, self._features(self._read(scores)), axes=1)
        return np.exp(log_softmax(Z.T + self.bias_, axis=1))

    def _read(self, scores: Scores) -> Matrix:
        """Return what f bends: tempered log-odds of the second class, or log-probabilities."""
        tempered = log_softmax(self.scale_ * scores.log_proba, axis=1)
        return class_log_odds(tempered)[:, 1:] if tempered.shape[1] == 2 else tempered

    def _features(self, x: Matrix) -> Matrix:
        """Return the functions of every class, shape (M, K, n); the first of two has none."""
        parts = ramps(x.T, self.knots_)
        if x.shape[1] > 1:
            return parts
        # Zero at even odds, so that the biases are what is added there.
        parts -= ramps(np.zeros(1), self.knots_)[:, None]
        return np.concatenate([np.zeros_like(parts), parts], axis=1)

    def _number_of_knots(self) -> int:
        if not isinstance(self.n_knots, Integral) or self.n_knots < 2:
            raise ValueError(
                f"SplineCalibration: n_knots must be an integer >= 2; got {self.n_knots!r}."
            )
        return int(self.n_knots)


def _knots(x: Matrix, weight: Vector, n_knots: int) -> Vector:
    """Return quantiles; of many classes' log-probabilities those where an outcome is open."""
    importance = np.repeat(weight[:, None], x.shape[1], axis=1)
    if x.shape[1] > 1:
        importance = importance * np.maximum(np.exp(x) * -np.expm1(x), 1e-12)
    levels = np.linspace(_BEYOND, 1 - _BEYOND, n_knots)
    return weighted_knots(x.ravel(), importance.ravel(), levels)
