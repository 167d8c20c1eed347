"""Ensemble temperature scaling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect
from hetcal._stored.fields import LARGEST, number, probabilities
from hetcal._typing import Matrix
from hetcal.calibration._shared import warn_unless
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Scores
from hetcal.kernels.mixture import mixture_weights
from hetcal.kernels.scaling import apply_softmax_map, fit_temperature, smoothed_targets


@stored_map({"inverse_temperature_": number(0, LARGEST), "weights_": probabilities(3)})
class EnsembleTemperatureScaling(GlobalCalibrator):
    r"""Mix tempered, given and uniform probabilities: :math:`q = v_1 p^{1/T} + v_2 p + v_3 / K`.

    The uniform part keeps a few gross errors of a confident classifier from flattening all other
    probabilities. Like a temperature it never changes which class is the most probable.

    Parameters
    ----------
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    inverse_temperature_ : float
        1 / T.
    weights_ : ndarray of shape (3,)
        Of the tempered, the given and the uniform probabilities; they minimise the log loss.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    References
    ----------
    Zhang, Kailkhura, Han: Mix-n-match: ensemble and compositional methods for uncertainty
    calibration in deep learning. ICML 2020.

    Examples
    --------
    >>> y_proba = [[0.99, 0.01], [0.98, 0.02], [0.01, 0.99], [0.97, 0.03], [0.02, 0.98]]
    >>> calibrator = EnsembleTemperatureScaling().fit(None, [0, 0, 1, 1, 1], y_proba=y_proba)
    >>> round(float(calibrator.weights_.sum()), 6)
    1.0
    """

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        K = scores.proba.shape[1]
        fitted = fit_temperature(scores.log_proba, smoothed_targets(codes, K, weight), weight)
        self.inverse_temperature_ = float(fitted.scale[0])
        warn_unless(fitted.converged, self)
        truth = self._parts(scores)[:, np.arange(codes.shape[0]), codes]
        # One pseudo-error in all, as in the targets of the temperature.
        errors = (1 - truth) / (K - 1)
        pseudo = weight / (weight.sum() + 1)
        self.weights_ = mixture_weights(np.hstack([truth, errors]), np.append(weight, pseudo))

    def _check_restored(self) -> None:
        super()._check_restored()
        expect(abs(self.weights_.sum() - 1) < 1e-6, self, "has weights that do not sum to one")

    def _apply_map(self, scores: Scores) -> Matrix:
        return np.tensordot(self.weights_, self._parts(scores), axes=1)

    def _parts(self, scores: Scores) -> Matrix:
        K = scores.proba.shape[1]
        scale = np.full(K, self.inverse_temperature_)
        tempered = apply_softmax_map(scores.log_proba, scale, np.zeros(K))
        return np.stack([tempered, scores.proba, np.full(scores.proba.shape, 1.0 / K)])
