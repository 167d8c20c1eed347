"""What an expert is, and the simplest ones: global maps.

Every family gives, for each of its experts, an *honest* prediction on the calibration items
(nothing in row i depends on the label of item i) and a prediction for new items. A row of NaN means
that the expert has nothing to say about the item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from hetcal.calibration.base import GlobalCalibrator, Matrix, Scores
from hetcal.calibration.hybrid.problem import Problem, rows_of


class Family(BaseEstimator, ABC):
    """Experts that are fitted together.

    Attributes
    ----------
    uses_model : bool
        Whether these experts look at the classifier's probabilities at all.
    """

    uses_model: bool = True
    in_base: bool = False  # whether its experts belong to the mean that a blend must beat
    may_join_base: bool = False  # whether they do so where they are no worse than that mean

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """One name per expert."""

    @abstractmethod
    def fit(self, problem: Problem) -> Self:
        """Learn from the calibration items."""

    @abstractmethod
    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Return one prediction (m, K) per expert for new items."""

    def honest(self, problem: Problem) -> list[Matrix]:
        """Return one honest prediction (n, K) per expert for the calibration items."""
        return self.cross_fitted(problem)

    def cross_fitted(self, problem: Problem) -> list[Matrix]:
        """Fit without each fold in turn and predict the items left out."""
        honest = [np.full((problem.n_items, problem.n_classes), np.nan) for _ in self.names]
        for fold in np.unique(problem.folds):
            out = problem.folds == fold
            fitted = clone(self).fit(problem.part(~out))
            said = fitted.predict(problem.features[out], rows_of(problem.scores, out))
            for total, part in zip(honest, said, strict=True):
                total[out] = part
        return honest


class GlobalFamily(Family):
    """One global map; honest predictions are cross-fitted."""

    def __init__(
        self,
        name: str,
        calibrator: GlobalCalibrator,
        *,
        in_base: bool = False,
        may_join_base: bool = False,
    ):
        self.name = name
        self.calibrator = calibrator
        self.in_base = in_base
        self.may_join_base = may_join_base

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the map."""
        return (self.name,)

    def fit(self, problem: Problem) -> Self:
        """Fit the map."""
        self.map_ = clone(self.calibrator)
        self.map_.input_kind_ = "y_proba"
        self.map_.classes_ = np.arange(problem.n_classes)
        self.map_._fit_map(problem.scores, problem.codes, problem.weight)
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Apply the map."""
        return [self.map_._apply_map(scores)]


def shares(votes: Matrix) -> Matrix:
    """Return votes as shares of their row; NaN where nobody voted."""
    total = votes.sum(axis=1, keepdims=True)
    return np.divide(votes, total, out=np.full_like(votes, np.nan), where=total > 0)
