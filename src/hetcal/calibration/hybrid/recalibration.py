"""The last step: correct what blending leaves under-confident, on out-of-sample predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np

from hetcal._stored import stored
from hetcal._stored.fields import LARGEST, instance, number, optional
from hetcal._typing import Matrix, Rows
from hetcal.calibration.beta import BetaCalibration
from hetcal.calibration.hybrid.trust import LEAST_LIKELIHOOD, likelihood_gain
from hetcal.data import CalibrationSet, Folds, Scores, out_of_sample
from hetcal.kernels.scaling import apply_softmax_map, fit_temperature, smoothed_targets
from hetcal.kernels.simplex import log_probabilities
from hetcal.metrics.scores import log_losses
from hetcal.metrics.standard_errors import mean_and_error

_FLOOR = 1e-9


@stored(
    {
        "inverse_temperature_": number(0, LARGEST),
        "beta_": optional(instance(BetaCalibration, "coef_", "intercept_")),
    }
)
class Recalibration:
    """A temperature, then a beta map if its cross-fitted log loss is better beyond noise.

    Attributes
    ----------
    inverse_temperature_ : float
    beta_ : BetaCalibration or None
        None where the temperature is enough, as it nearly always is.
    """

    def fit(self, blend: Matrix, items: CalibrationSet, folds: Folds, caution: float) -> Self:
        """Learn from out-of-sample predictions; ``caution`` in standard errors of the gain."""
        targets = smoothed_targets(items.codes, items.n_classes, items.counts)
        fitted = fit_temperature(log_probabilities(blend, _FLOOR), targets, items.counts)
        self.inverse_temperature_ = float(fitted.scale[0])
        self.inverse_temperature_ **= _believed(self._tempered(blend), blend, items, caution)
        tempered = self._tempered(blend)
        self.beta_ = None
        if _gain_exceeds_noise(tempered, items, folds, caution):
            self.beta_ = _fitted_beta(tempered, items)
        return self

    def apply(self, Q: Matrix) -> Matrix:
        """Return recalibrated probabilities."""
        tempered = self._tempered(Q)
        return tempered if self.beta_ is None else self.beta_._apply_map(_scores(tempered))

    def _tempered(self, Q: Matrix) -> Matrix:
        K = Q.shape[1]
        return apply_softmax_map(
            log_probabilities(Q, _FLOOR), np.full(K, self.inverse_temperature_), np.zeros(K)
        )


def _believed(tempered: Matrix, blend: Matrix, items: CalibrationSet, caution: float) -> float:
    """Return how far to believe a temperature, by how much its likelihood exceeds chance.

    Without anything to correct, twice the gain in log-likelihood is about the square of a standard
    normal; what is believed is what is left of it beyond ``caution`` standard errors.
    """
    gain = likelihood_gain(tempered, blend, items)
    return max(0.0, 1.0 - caution**2 / (2 * gain)) if gain > 0 else 0.0


def _gain_exceeds_noise(
    tempered: Matrix, items: CalibrationSet, folds: Folds, caution: float
) -> bool:
    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        beta = _fitted_beta(tempered[train], items.take(train))
        return lambda test: beta._apply_map(_scores(tempered[test]))

    mapped = out_of_sample(learn, folds, items.n_items)
    loss, loss_before = (
        log_losses(Q, items.codes, eps=LEAST_LIKELIHOOD) for Q in (mapped, tempered)
    )
    mean, error = mean_and_error(loss - loss_before, items.counts, items.groups)
    return bool(mean + caution * error < 0)


def _fitted_beta(Q: Matrix, items: CalibrationSet) -> BetaCalibration:
    beta = BetaCalibration()
    beta._fit_map(_scores(Q), items.codes, items.counts)
    return beta


def _scores(Q: Matrix) -> Scores:
    return Scores.from_proba(Q, _FLOOR)
