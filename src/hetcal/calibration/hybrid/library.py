"""Which experts are asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import has_fit_parameter

from hetcal.calibration.base import BaseCalibrator
from hetcal.calibration.blend import GlobalBlend
from hetcal.calibration.chosen_columns import ChosenColumns, as_transformer
from hetcal.calibration.hybrid.families import Family, GlobalFamily
from hetcal.calibration.hybrid.forests import ForestVoteFamily, ProximityFamily
from hetcal.calibration.hybrid.kernel_machine import KernelFamily
from hetcal.calibration.hybrid.nearest import NeighbourFamily
from hetcal.calibration.hybrid.retrained import (
    BoostingFamily,
    CalibratorFamily,
    ModelFamily,
    WideBoostingFamily,
)
from hetcal.calibration.preserving import LabelPreserving
from hetcal.calibration.similarity import SimilarityCalibrator
from hetcal.data import CalibrationSet

FAMILIES = ("proximity", "forests", "neighbours", "kernel", "boosting", "wide-boosting")

# Up to so many features trees may look at all of them; beyond, forests' own votes added nothing to
# the votes of similar items where the recipe was chosen, and boosting is the kind for wide data.
_TABLE_FEATURES = 300
# Boosting is admitted while it takes seconds: items x features x classes, and trees per round.
BOOSTING_COST = 1_500_000
_BOOSTING_CLASSES = 10
# Boosting for wide data cuts columns and looks for splits, which takes as long as 2000 more items.
_WIDE_BOOSTING_COST = 60_000_000
_WIDE_BOOSTING_OVERHEAD = 2000


@dataclass(frozen=True)
class Library:
    """Makes families of experts for one set of calibration items."""

    items: CalibrationSet
    n_estimators: int
    seed: int
    n_jobs: int | None

    def __post_init__(self) -> None:
        n = self.n_estimators
        if not (isinstance(n, int | np.integer) and n > 0):
            raise ValueError(
                f"HybridCalibrator: n_estimators must be a positive integer; got {n!r}."
            )

    def global_maps(self) -> list[Family]:
        """Return the base, what a blend must beat: the average of global maps.

        Its folds are the hybrid's own, so its out-of-sample predictions are too.
        """
        return [GlobalFamily("global", GlobalBlend(random_state=self.seed), in_base=True)]

    def wanted(self, experts: Any) -> list[Family]:
        """Return the local experts that ``experts`` asks for."""
        if isinstance(experts, str) and experts == "auto":
            return [family for name in self._admitted() for family in self.family(name)]
        alone = isinstance(experts, str | BaseEstimator) or not isinstance(experts, Iterable)
        asked = [experts] if alone else list(experts)
        _refuse_repetition(asked)
        return [
            family for place, expert in enumerate(asked) for family in self._read(place, expert)
        ]

    def auxiliary(self, families: list[Family]) -> list[Family]:
        """Return what is needed for support and for comparing without the classifier."""
        there = any(isinstance(family, ProximityFamily) for family in families)
        return [] if there else [self.proximity(with_model=False)]

    def family(self, name: str) -> list[Family]:
        """Return the experts of one of our families, those that see p first."""
        if name == "proximity":
            return [self.proximity(), self.proximity(with_model=False)]
        if name == "forests":
            leaves = [leaf for leaf in (1, 3, 10) if self.items.n_items >= 10 * leaf]
            return [*(self.forest(leaf) for leaf in leaves), self.forest(1, with_model=False)]
        if name == "neighbours":
            return [
                NeighbourFamily(((5, 3.0),), logs=True),
                NeighbourFamily(((5, 3.0), (10, 1.0)), logs=False),
            ]
        if name == "kernel":
            return [KernelFamily(with_model=see, seed=self.seed) for see in (True, False)]
        if name == "wide-boosting":
            # With more classes every round grows a tree per class: one such expert is enough.
            kinds = (True, False) if self.items.n_classes == 2 else (False,)
            options: dict[str, Any] = {"seed": self.seed, "n_jobs": self.n_jobs}
            return [WideBoostingFamily(with_model=see, **options) for see in kinds]
        return [BoostingFamily(kind, n_jobs=self.n_jobs) for kind in ("boosting", "boosting-small")]

    def proximity(self, *, with_model: bool = True) -> Family:
        """Return votes by proximity."""
        powers = (2.0, 8.0, 16.0) if with_model else (8.0,)
        return ProximityFamily(powers, with_model=with_model, **self._forest_options())

    def forest(self, leaf: int, *, with_model: bool = True) -> Family:
        """Return a forest's own vote, of half as many trees: means are steadier than powers."""
        options = self._forest_options() | {"n_estimators": (self.n_estimators + 1) // 2}
        return ForestVoteFamily(leaf, with_model=with_model, **options)

    def _forest_options(self) -> dict[str, Any]:
        return {"n_estimators": self.n_estimators, "seed": self.seed, "n_jobs": self.n_jobs}

    def _admitted(self) -> list[str]:
        """Return the families that are worth their cost on these items."""
        n, d, K = self.items.n_items, self.items.features().shape[1], self.items.n_classes
        wide = d > _TABLE_FEATURES
        left_out = {"forests", "boosting"} if wide else {"wide-boosting"}
        if wide:
            # Two experts with two classes, else one with a tree per class.
            too_dear = (n + _WIDE_BOOSTING_OVERHEAD) * d * K > _WIDE_BOOSTING_COST
        else:
            too_dear = n * d * (K if K > 2 else 1) > BOOSTING_COST
        if too_dear or K > _BOOSTING_CLASSES:
            left_out |= {"boosting", "wide-boosting"}
        return [name for name in FAMILIES if name not in left_out]

    def _read(self, place: int, expert: Any) -> list[Family]:
        from hetcal.calibration.registry import get_calibrator, list_calibrators

        if isinstance(expert, str):
            if expert in FAMILIES:
                return self.family(expert)
            if expert in list_calibrators():
                return [CalibratorFamily(expert, get_calibrator(expert), kind=self.items.kind)]
        elif isinstance(expert, BaseCalibrator) or _calibrates(expert):
            encoded = _by_encoded_columns(expert, self.items)
            return [CalibratorFamily(_label(place, expert), encoded, kind=self.items.kind)]
        elif isinstance(expert, FrozenEstimator):
            raise ValueError(
                f"HybridCalibrator: experts[{place}] is frozen, so it cannot be trained without "
                "the items that it predicts, and nobody could tell whether it has seen them. Pass "
                "the classifier itself, which is trained anew, or its probabilities as a feature."
            )
        elif _is_model(expert):
            return [ModelFamily(_label(place, expert), expert)]
        raise ValueError(
            f"HybridCalibrator: experts[{place}] is {expert!r}, which is no expert. Pass 'auto', "
            f"or a sequence of: one of {', '.join(FAMILIES)}; the name of a calibrator "
            f"({', '.join(list_calibrators())}); a hetcal calibrator; a scikit-learn classifier "
            "with predict_proba."
        )


def _refuse_repetition(asked: list[Any]) -> None:
    names = [expert for expert in asked if isinstance(expert, str)]
    double = [name for place, name in enumerate(names) if name in names[:place]]
    if double:
        raise ValueError(
            f"HybridCalibrator: experts names {double[0]!r} twice. Name every expert once."
        )


def _by_encoded_columns(expert: Any, items: CalibrationSet) -> Any:
    """Return an expert that compares by columns of X as one that finds them in the encoded X."""
    inner = expert.calibrator if isinstance(expert, LabelPreserving) else expert
    if not isinstance(inner, SimilarityCalibrator) or inner.features is None:
        return expert
    chosen = as_transformer(inner.features, "SimilarityCalibrator")
    if not isinstance(chosen, ChosenColumns):
        return expert
    places = items.encoder().places_out(chosen.places(items.X))
    encoded = clone(inner).set_params(features=places)
    return clone(expert).set_params(calibrator=encoded) if inner is not expert else encoded


def _calibrates(expert: Any) -> bool:
    """Say whether it is a user's own calibrator: its fit takes the classifier's probabilities."""
    return _is_model(expert) and has_fit_parameter(expert, "y_proba")


def _is_model(expert: Any) -> bool:
    can = hasattr(expert, "fit") and hasattr(expert, "predict_proba")
    return can and not isinstance(expert, type)


def _label(place: int, expert: Any) -> str:
    return f"{place}:{type(expert).__name__}"
