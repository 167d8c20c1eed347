"""How experts become one prediction: weights, share of the blend, last step, trust in it all.

All of them are learned from out-of-sample predictions of the experts. What is said about an item by
a recipe that has learned from its label is a little too good, so the whole recipe is learned once
more without each fold. The experts are not: they predict the item without its label already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hetcal._typing import Matrix, Rows, Vector
from hetcal.calibration.hybrid.recalibration import Recalibration
from hetcal.calibration.hybrid.stacking import (
    cautious_share,
    cross_fitted_blend,
    learned_weights,
)
from hetcal.calibration.hybrid.trust import trust
from hetcal.data import CalibrationSet, Folds, out_of_sample

# With so many items, or groups, a recipe that lacks a fifth of them is much more cautious than the
# one that is used, and states too low a gain: each fold is left out in so many parts.
_FEW, _PARTS = 250, 2


@dataclass(frozen=True, eq=False)
class Recipe:
    """What was learned about the experts.

    Attributes
    ----------
    weights : ndarray of shape (J,)
        Weights inside the blend, of the base first.
    share : float
        How far the blend replaces the base.
    recalibration : Recalibration
        The last step.
    trust : float
        How far the result replaces the classifier's own probabilities.
    """

    weights: Vector
    share: float
    recalibration: Recalibration
    trust: float

    @classmethod
    def learn(
        cls, predictions: Matrix, items: CalibrationSet, folds: Folds, caution: float
    ) -> Recipe:
        """Learn from out-of-sample predictions of the experts, shape (J, n, K), the base first."""
        base = predictions[0]
        blend = cross_fitted_blend(predictions, items, folds)
        share = cautious_share(blend, base, items, caution)
        blend = (1 - share) * base + share * blend
        last = Recalibration().fit(blend, items, folds, caution)
        return cls(
            learned_weights(predictions, items.onehot, items.counts),
            share,
            last,
            trust(last.apply(blend), items, caution),
        )

    def blend(self, predictions: Matrix) -> Matrix:
        """Return the prediction before the last step."""
        weights = self.share * self.weights
        weights[0] += 1 - self.share
        return np.tensordot(weights, predictions, axes=1)

    def final(self, blend: Matrix, p: Matrix) -> Matrix:
        """Return the prediction of items of which the classifier says p."""
        return (1 - self.trust) * p + self.trust * self.recalibration.apply(blend)


def predicted_without_fold(
    predictions: Matrix, items: CalibrationSet, folds: Folds, caution: float, seed: int
) -> tuple[Matrix, Matrix]:
    """Return each item's prediction by a recipe learned without its fold: blended, and final."""

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        part = items.take(train)
        groups = part.groups
        if groups is not None and groups.max() == 0:
            groups = None  # a single group cannot be left out
        inner = Folds.make(part.n_items, len(folds), seed=seed, groups=groups)
        recipe = Recipe.learn(predictions[:, train], part, inner, caution)

        def predict(test: Rows) -> Matrix:
            blend = recipe.blend(predictions[:, test])
            return np.stack([blend, recipe.final(blend, items.proba[test])])

        return predict

    blend, final = out_of_sample(learn, _in_parts(folds, items), items.n_items)
    return blend, final


def _in_parts(folds: Folds, items: CalibrationSet) -> Folds:
    units = np.arange(items.n_items) if items.groups is None else items.groups
    if np.unique(units).shape[0] > _FEW:
        return folds
    part = np.empty(items.n_items, dtype=np.int64)
    for _, test in folds:
        part[test] = np.unique(units[test], return_inverse=True)[1] % _PARTS
    return Folds(np.unique(folds.number * _PARTS + part, return_inverse=True)[1])
