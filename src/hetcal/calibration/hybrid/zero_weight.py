"""Experts of weight zero: their names stay in a file, what they learned does not."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from hetcal._stored import stored
from hetcal._stored.fields import MOST_CLASSES, flag, text, whole
from hetcal._typing import Matrix
from hetcal.calibration.hybrid.families import Family
from hetcal.calibration.hybrid.forests import ProximityFamily
from hetcal.data import Scores

_MOST_EXPERTS = 64


def _names(value: Any) -> bool:
    good = isinstance(value, tuple) and 0 < len(value) <= _MOST_EXPERTS
    return good and all(map(text, value))


@stored({"experts": _names, "with_model": flag, "n_classes": whole(2, MOST_CLASSES)})
class ZeroWeightExperts(Family):
    """Stands for experts whose weight in the blend is zero.

    Parameters
    ----------
    experts : tuple of str
        Their names.
    with_model : bool, default=True
        Whether they looked at the classifier's probabilities.
    n_classes : int, default=2
    """

    def __init__(self, experts: tuple[str, ...], with_model: bool = True, n_classes: int = 2):
        self.experts = experts
        self.with_model = with_model
        self.n_classes = n_classes

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the experts."""
        return tuple(self.experts)

    @property
    def classes_known(self) -> int:
        """Number of classes."""
        return self.n_classes

    @property
    def uses_model(self) -> bool:  # type: ignore[override]
        """Whether these experts looked at the classifier's probabilities."""
        return self.with_model

    def fit(self, problem: Any) -> NoReturn:
        """Refuse."""
        raise ValueError("ZeroWeightExperts only stands for experts that were left out of a file.")

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Have nothing to say."""
        return [np.full(scores.proba.shape, np.nan) for _ in self.experts]


def without_zero_weight(calibrator: Any) -> list[Family]:
    """Return the families of a hybrid, with placeholders for those that no prediction asks."""
    families = list(calibrator.families_)
    say = iter(np.asarray(calibrator.weights_)[1:] * calibrator.share_)
    proximity = next((f for f in families if isinstance(f, ProximityFamily)), None)
    K = len(calibrator.classes_)
    for place, (family, in_base) in enumerate(zip(families, calibrator.in_base_, strict=True)):
        weights = [next(say) for _ in family.names]
        if not (max(weights) > 0 or in_base or family is proximity):
            families[place] = ZeroWeightExperts(tuple(family.names), bool(family.uses_model), K)
    return families
