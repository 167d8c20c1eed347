"""Experts that are whole models: boosting, a classifier of the user, another calibrator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from hetcal._stored import expect, stored
from hetcal._stored.fields import (
    MOST_CLASSES,
    flag,
    in_range,
    instance,
    is_array,
    one_of,
    optional,
    text,
    whole,
)
from hetcal._typing import Matrix
from hetcal.calibration.base import BaseCalibrator
from hetcal.calibration.crossfit import fit_weighted
from hetcal.calibration.fitting import checked_proba
from hetcal.calibration.hybrid.families import Family
from hetcal.calibration.hybrid.space import LogSpace
from hetcal.data import CalibrationSet, Folds, Scores
from hetcal.kernels.boosted_trees import BoostedTrees
from hetcal.kernels.boosting import AdditiveTrees, Boosting
from hetcal.kernels.boosting_binned import BinnedBoosting

_BOOSTING = {
    "boosting": BinnedBoosting(n_rounds=120, learning_rate=0.06, n_leaves=12, l2=1.0),
    # Nearly additive: less to learn, so that a few hundred items suffice.
    "boosting-small": BinnedBoosting(n_rounds=100, learning_rate=0.08, n_leaves=4, l2=5.0),
}


class ModelFamily(Family):
    """A classifier trained on [X, log p] of the calibration items, cross-fitted."""

    def __init__(self, name: str, model: Any):
        self.name = name
        self.model = model

    @property
    def names(self) -> tuple[str, ...]:
        """One classifier."""
        return (self.name,)

    def fit(self, items: CalibrationSet) -> Self:
        """Train it, unless all items are of one class."""
        self.n_classes_ = items.n_classes
        self.fitted_: Any = None
        if np.unique(items.codes).shape[0] >= 2:
            self.space_ = self._space().fit(items)
            Z = self.space_.transform(items.features(), items.scores)
            self.fitted_ = self._train(Z, items)
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Return its probabilities, zero for classes that no item had."""
        if self.fitted_ is None:
            return [np.full((scores.proba.shape[0], self.n_classes_), np.nan)]
        known = self.fitted_.classes_
        said = self._ask(self.space_.transform(features, scores))
        Q = np.zeros((scores.proba.shape[0], self.n_classes_))
        Q[:, known] = checked_proba(self.fitted_, said, (Q.shape[0], len(known)))
        return [Q]

    def _space(self) -> LogSpace:
        return LogSpace(metric=True)

    def _train(self, Z: Matrix, items: CalibrationSet) -> Any:
        return fit_weighted(clone(self.model), Z, items.codes, items.unequal_counts)

    def _ask(self, Z: Matrix) -> Matrix:
        return self.fitted_.predict_proba(Z)


_STORED = {"n_classes_": whole(2, MOST_CLASSES), "space_": instance(LogSpace, "center_")}


@stored(
    _STORED
    | {
        "fitted_": optional(instance(BoostedTrees)),
        "name": text,
        "known_": lambda value: is_array(value, "b", (None,)),
    },
    may_lack=("space_", "known_"),
)
class BoostingFamily(ModelFamily):
    """Gradient boosting on [X, log p]: what retraining a boosted model would give.

    ``seed`` and ``known_`` are in files of the boosting before this one, which drew at random and
    left out columns without any value.
    """

    def __init__(self, name: str = "boosting", *, seed: int = 0, n_jobs: int | None = None):
        self.name = name
        self.seed = seed
        self.n_jobs = n_jobs

    def _space(self) -> LogSpace:
        return LogSpace()

    def _train(self, Z: Matrix, items: CalibrationSet) -> Any:
        least = _least_weight(items.n_items)
        return _BOOSTING[self.name].fit(
            self.space_.binned(items), items.codes, least_weight=least, **self._options(items)
        )

    def out_of_sample(self, items: CalibrationSet, folds: Folds) -> list[Matrix]:
        """Boost without each fold, all of them side by side on the same bins."""
        if self.fitted_ is None:
            return self.cross_fitted(items, folds)
        least = np.array([_least_weight(len(train)) for train, _ in folds])
        Q = _BOOSTING[self.name].out_of_fold(
            *(self.space_.binned(items), items.codes, items.n_classes, folds.number),
            least_weight=least,
            **self._options(items),
        )
        return [Q]

    def _options(self, items: CalibrationSet) -> dict[str, Any]:
        return {"weight": items.unequal_counts, "n_jobs": self.n_jobs}

    def _check_restored(self) -> None:
        trees = self.fitted_
        if trees is None:  # all items were of one class
            return
        expect(in_range(trees.classes_, 0, self.n_classes_), self, "has odd classes")
        expect(hasattr(self, "space_"), self, "has no space")
        n_columns = len(self.space_.center_)
        known: Any = getattr(self, "known_", np.ones(n_columns, dtype=bool))
        good = is_array(known, "b", (n_columns,))
        expect(good, self, "does not know its columns")
        expect(int(known.sum()) == trees.n_features, self, "has trees of other columns")

    def _ask(self, Z: Matrix) -> Matrix:
        return super()._ask(Z[:, self.known_] if hasattr(self, "known_") else Z)


def _least_weight(n_items: int) -> int:
    """Return how many items a leaf must hold."""
    return int(np.clip(n_items // 40, 3, 20))


@stored(
    _STORED | {"with_model": flag, "fitted_": optional(instance(AdditiveTrees))},
    may_lack=("space_",),
)
class WideBoostingFamily(ModelFamily):
    """Gradient boosting for hundreds of columns, of which each tree sees a few."""

    def __init__(self, *, with_model: bool = True, seed: int = 0, n_jobs: int | None = None):
        self.with_model = with_model
        self.seed = seed
        self.n_jobs = n_jobs

    @property
    def uses_model(self) -> bool:  # type: ignore[override]
        """Whether the trees see the classifier's probabilities."""
        return self.with_model

    @property
    def names(self) -> tuple[str, ...]:
        """One boosted model."""
        return ("wide-boosting" if self.with_model else "wide-boosting-x",)

    def _space(self) -> LogSpace:
        return LogSpace(with_model=self.with_model)

    def _train(self, Z: Matrix, items: CalibrationSet) -> Any:
        options: dict[str, Any] = {"seed": self.seed, "n_jobs": self.n_jobs}
        return Boosting().fit(Z, items.codes, weight=items.counts, **options)

    def _check_restored(self) -> None:
        trees = self.fitted_
        if trees is None:  # all items were of one class
            return
        expect(hasattr(self, "space_"), self, "has no space")
        expect(in_range(trees.classes_, 0, self.n_classes_), self, "has odd classes")
        expect(in_range(trees.column, 0, len(self.space_.center_)), self, "has other columns")


@stored(
    {
        "name": text,
        "calibrator": instance(BaseCalibrator),
        "kind": one_of("y_proba", "logits"),
        "n_classes_": whole(2, MOST_CLASSES),
        "fitted_": optional(instance(BaseCalibrator, "classes_")),
    }
)
class CalibratorFamily(Family):
    """Another calibrator; out of sample by itself where it can, else cross-fitted."""

    def __init__(self, name: str, calibrator: BaseCalibrator, *, kind: str = "y_proba"):
        self.name = name
        self.calibrator = calibrator
        self.kind = kind

    @property
    def names(self) -> tuple[str, ...]:
        """One calibrator."""
        return (self.name,)

    def fit(self, items: CalibrationSet) -> Self:
        """Fit it on the items, unless all are of one class."""
        self.n_classes_ = items.n_classes
        self.fitted_: Any = None
        if np.unique(items.codes).shape[0] >= 2:
            unfitted: Any = clone(self.calibrator)
            if "classes" in unfitted.get_params(deep=False):  # a user's own may do without
                unfitted.set_params(classes=np.arange(items.n_classes))
            options = self._output(items.scores)
            if items.unequal_counts is not None and has_fit_parameter(unfitted, "sample_weight"):
                options["sample_weight"] = items.counts
            self.fitted_ = unfitted.fit(items.features(), items.codes, **options)
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Ask the calibrator."""
        if self.fitted_ is None:
            return [np.full((scores.proba.shape[0], self.n_classes_), np.nan)]
        said = self.fitted_.predict_proba(features, **self._output(scores))
        return [checked_proba(self.fitted_, said, scores.proba.shape)]

    def out_of_sample(self, items: CalibrationSet, folds: Folds) -> list[Matrix]:
        """Take the calibrator's own out-of-sample probabilities where it has them."""
        own = (
            None
            if items.groups is not None
            else getattr(self.fitted_, "out_of_sample_proba_", None)
        )
        if own is None:
            return self.cross_fitted(items, folds)
        return [checked_proba(self.fitted_, own, items.proba.shape)]

    def _check_restored(self) -> None:
        inner = self.fitted_
        if inner is not None:
            expect(len(inner.classes_) == self.n_classes_, self, "has other classes")
            expect(inner.input_kind_ == self.kind, self, "has a calibrator of other input")

    def _output(self, scores: Scores) -> dict[str, Any]:
        return {self.kind: scores.log_proba if self.kind == "logits" else scores.proba}
