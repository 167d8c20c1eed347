"""What an expert is, and the simplest ones: global maps.

Every family gives, for each of its experts, an out-of-sample prediction of the calibration items
(nothing in row i depends on the label of item i) and a prediction for new items. A row of NaN means
that the expert has nothing to say about the item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from hetcal._stored import stored
from hetcal._stored.fields import flag, instance, text
from hetcal._typing import Matrix, Rows
from hetcal.calibration.base import GlobalCalibrator
from hetcal.data import CalibrationSet, Folds, Scores, out_of_sample


class Family(BaseEstimator, ABC):
    """Experts that are fitted together.

    Attributes
    ----------
    uses_model : bool
        Whether these experts look at the classifier's probabilities at all.
    """

    uses_model: bool = True
    in_base: bool = False  # whether its experts belong to the mean that a blend must beat

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """One name per expert."""

    @property
    def classes_known(self) -> int:
        """Number of classes of a fitted family, to be checked after loading."""
        return self.n_classes_

    @abstractmethod
    def fit(self, items: CalibrationSet) -> Self:
        """Learn from the calibration items."""

    @abstractmethod
    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Return one prediction (m, K) per expert for new items."""

    def out_of_sample(self, items: CalibrationSet, folds: Folds) -> list[Matrix]:
        """Return one prediction (n, K) per expert for the calibration items it was fitted to."""
        return self.cross_fitted(items, folds)

    def cross_fitted(self, items: CalibrationSet, folds: Folds) -> list[Matrix]:
        """Fit without each fold in turn and predict the items left out."""

        def learn(train: Rows) -> Callable[[Rows], Matrix]:
            fitted = clone(self).fit(items.take(train))
            return lambda test: np.stack(
                fitted.predict(items.features()[test], items.scores.take(test))
            )

        return list(out_of_sample(learn, folds, items.n_items))


@stored(
    {
        "name": text,
        "calibrator": instance(GlobalCalibrator),
        "in_base": flag,
        "may_join_base": flag,
        "map_": instance(GlobalCalibrator, "classes_", "input_kind_"),
    }
)
class GlobalFamily(Family):
    """One global map; out-of-sample predictions are cross-fitted.

    ``may_join_base`` is in files that were written when the base was a mean of several maps.
    """

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

    @property
    def classes_known(self) -> int:
        """Number of classes."""
        return len(self.map_.classes_)

    def fit(self, items: CalibrationSet) -> Self:
        """Fit the map."""
        self.map_ = clone(self.calibrator)
        self.map_.input_kind_ = "y_proba"
        self.map_.classes_ = np.arange(items.n_classes)
        self.map_._fit_items(items)
        return self

    def out_of_sample(self, items: CalibrationSet, folds: Folds) -> list[Matrix]:
        """Return the map's own out-of-sample predictions where it has any, else cross-fit it."""
        own = getattr(self.map_, "out_of_sample_proba_", None)
        return self.cross_fitted(items, folds) if own is None else [own]

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Apply the map."""
        return [self.map_._apply_map(scores)]


def shares(votes: Matrix) -> Matrix:
    """Return votes as shares of their row; NaN where nobody voted."""
    total = votes.sum(axis=1, keepdims=True)
    return np.divide(votes, total, out=np.full_like(votes, np.nan), where=total > 0)
