"""Ensemble temperature scaling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect
from hetcal._stored.fields import LARGEST, number, probabilities
from hetcal._typing import Matrix, Vector
from hetcal.calibration._shared import warn_unless
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Scores
from hetcal.kernels.mixture import mixture_weights
from hetcal.kernels.scaling import apply_softmax_map, fit_temperature, smoothed_targets

_LEAST_SCALE, _LARGEST_SCALE, _STEPS = 1e-3, 10.0, 21
_PRICE = 0.5  # in units of log loss, for one of the logarithm of the scale


@stored_map({"inverse_temperature_": number(0, LARGEST), "weights_": probabilities(3)})
class EnsembleTemperatureScaling(GlobalCalibrator):
    r"""Mix tempered, given and uniform probabilities: :math:`q = v_1 p^{1/T} + v_2 p + v_3 / K`.

    Temperature and weights are chosen together by the log loss. The uniform part keeps a few gross
    errors of a confident classifier from flattening all other probabilities. Like a temperature it
    never changes which class is the most probable.

    Parameters
    ----------
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    inverse_temperature_ : float
        1 / T.
    weights_ : ndarray of shape (3,)
        Of the tempered, the given and the uniform probabilities.
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
        warn_unless(fitted.converged, self)
        alone = float(np.clip(fitted.scale[0], _LEAST_SCALE, _LARGEST_SCALE))
        # Beside a uniform part a temperature need not serve gross errors too. A higher scale than
        # the best one alone must earn its distance, so that what the items do not tell stays.
        farther = np.linspace(0.0, np.log(_LARGEST_SCALE / alone), _STEPS)
        mixtures = [
            _Mixture.fit(alone * float(np.exp(at)), scores, codes, weight) for at in farther
        ]
        losses = np.array([mixture.loss for mixture in mixtures])
        best = int(np.argmin(losses + _PRICE * farther))
        self.inverse_temperature_, self.weights_ = mixtures[best].scale, mixtures[best].weights

    def _check_restored(self) -> None:
        super()._check_restored()
        expect(abs(self.weights_.sum() - 1) < 1e-6, self, "has weights that do not sum to one")

    def _apply_map(self, scores: Scores) -> Matrix:
        return np.tensordot(self.weights_, _parts(self.inverse_temperature_, scores), axes=1)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """The best weights for one temperature, and their log loss."""

    scale: float
    weights: Vector
    loss: float

    @classmethod
    def fit(
        cls, scale: float, scores: Scores, codes: NDArray[np.int64], weight: Matrix
    ) -> _Mixture:
        K = scores.proba.shape[1]
        truth = _parts(scale, scores)[:, np.arange(codes.shape[0]), codes]
        # One pseudo-error in all, as in the targets of the temperature.
        errors = (1 - truth) / (K - 1)
        said = np.hstack([truth, errors])
        counted = np.append(weight, weight / (weight.sum() + 1))
        weights = mixture_weights(said, counted)
        loss = -float(counted @ np.log(np.maximum(weights @ said, 1e-300)))
        return cls(scale, weights, loss)


def _parts(scale: float, scores: Scores) -> Matrix:
    """Return tempered, given and uniform probabilities, shape (3, n, K)."""
    K = scores.proba.shape[1]
    tempered = apply_softmax_map(scores.log_proba, np.full(K, scale), np.zeros(K))
    return np.stack([tempered, scores.proba, np.full(scores.proba.shape, 1.0 / K)])
