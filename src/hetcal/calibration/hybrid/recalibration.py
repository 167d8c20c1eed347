"""The last step: what blending leaves too timid or lopsided is corrected on honest predictions."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from hetcal.calibration.base import Matrix, Scores
from hetcal.calibration.beta import BetaCalibration
from hetcal.calibration.hybrid.problem import Problem, group_sums
from hetcal.kernels.scaling import apply_softmax_map, fit_temperature, smoothed_targets
from hetcal.kernels.simplex import log_probabilities

_FLOOR = 1e-9
_LEAST_LIKELIHOOD = 1e-6


class Recalibration:
    """A temperature, then a beta map if its cross-fitted log loss is better beyond noise.

    Attributes
    ----------
    inverse_temperature_ : float
    beta_ : BetaCalibration or None
        None where the temperature is enough, as it nearly always is.
    """

    def fit(self, honest: Matrix, problem: Problem, caution: float) -> Self:
        """Learn from honest predictions; ``caution`` is in standard errors of the gain."""
        targets = smoothed_targets(problem.codes, problem.n_classes, problem.weight)
        fitted = fit_temperature(log_probabilities(honest, _FLOOR), targets, problem.weight)
        self.inverse_temperature_ = float(fitted.scale[0])
        tempered = self._tempered(honest)
        self.beta_ = None
        if self._gain_exceeds_noise(tempered, problem, caution):
            self.beta_ = _fitted_beta(tempered, problem)
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

    def _gain_exceeds_noise(self, tempered: Matrix, problem: Problem, caution: float) -> bool:
        mapped = np.empty_like(tempered)
        for fold in np.unique(problem.folds):
            out = problem.folds == fold
            beta = _fitted_beta(tempered[~out], problem.part(~out))
            mapped[out] = beta._apply_map(_scores(tempered[out]))
        loss = _log_loss(mapped, problem.codes) - _log_loss(tempered, problem.codes)
        total = problem.weight.sum()
        mean = float(problem.weight @ loss) / total
        apart = group_sums(problem.weight * (loss - mean), problem.groups)
        error = float(np.sqrt(apart @ apart)) / total
        return mean + caution * error < 0


def _fitted_beta(Q: Matrix, problem: Problem) -> BetaCalibration:
    beta = BetaCalibration()
    beta._fit_map(_scores(Q), problem.codes, problem.weight)
    return beta


def _scores(Q: Matrix) -> Scores:
    return Scores.from_proba(Q, _FLOOR)


def _log_loss(Q: Matrix, codes: NDArray[np.int64]) -> Matrix:
    return -np.log(np.maximum(Q[np.arange(codes.shape[0]), codes], _LEAST_LIKELIHOOD))
