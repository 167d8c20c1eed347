"""The global map to take when nothing is known: an average of maps, shrunk towards none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hetcal._stored import expect
from hetcal._stored.fields import instance, list_of, probabilities, text
from hetcal._typing import Matrix, Rows, Vector
from hetcal.calibration._shared import check_non_negative
from hetcal.calibration.atoms import AtomCalibration
from hetcal.calibration.base import GlobalCalibrator, GroupAwareCalibrator, stored_map
from hetcal.calibration.isotonic import IsotonicCalibration
from hetcal.calibration.matrix import MatrixScaling
from hetcal.calibration.spline import SplineCalibration
from hetcal.calibration.temperature import TemperatureScaling
from hetcal.calibration.uncalibrated import Uncalibrated
from hetcal.calibration.vector import VectorScaling
from hetcal.calibration.venn_abers import VennAbersCalibration
from hetcal.data import CalibrationSet, Folds, Scores, out_of_sample
from hetcal.kernels.atoms import find_atoms
from hetcal.kernels.mixture import mixture_weights

_AS_IT_IS = "uncalibrated"
# On an imagined item: what a map says of the truth for every one of the classifier's own.
_RIVALS = 0.6
_LEAST_WEIGHT = 0.01
# How many of the items are imagined once more with another label: what no item has shown yet may
# still happen, so that few items do not confirm a stated certainty.
_SURPRISES = 0.5
# Out-of-sample probabilities count as no less, so that one surprise cannot decide.
_LEAST_LIKELIHOOD = 1e-6
# A full matrix is admitted while a fit takes a second: items x classes^2.
_MATRIX_COST = 3_000_000
# Weak, because the weights decide how far the matrix is believed.
_MATRIX_SHRINKAGE = 0.05
_ISOTONIC_ITEMS_PER_CLASS = 100
_ITEMS_PER_ATOM = 5


def candidates(items: CalibrationSet) -> dict[str, GlobalCalibrator]:
    """Return the maps that are averaged, the classifier as it is first.

    Few maps of different kinds: one number, a smooth curve, steps, confusions between classes,
    and a frequency per value where there are few values. Others of the same kinds were tried in
    their place or beside them (benchmarks/global_calibrators.py) and added nothing.
    """
    n, K = items.n_items, items.n_classes
    maps: dict[str, GlobalCalibrator] = {
        _AS_IT_IS: Uncalibrated(),
        "temperature": TemperatureScaling(),
        "spline": SplineCalibration(),
    }
    if K == 2:
        maps["venn-abers"] = VennAbersCalibration()
    elif n >= _ISOTONIC_ITEMS_PER_CLASS * K:
        maps["isotonic"] = IsotonicCalibration()
    if K > 2 and n * K**2 <= _MATRIX_COST:
        maps["matrix"] = MatrixScaling(shrinkage=_MATRIX_SHRINKAGE)
    elif K > 2:
        maps["vector"] = VectorScaling()
    if find_atoms(items.proba)[0].shape[0] * _ITEMS_PER_ATOM <= n:
        maps["atoms"] = AtomCalibration()
    return maps


@stored_map(
    {
        "names_": list_of(text),
        "weights_": probabilities(None),
        "maps_": list_of(instance(GlobalCalibrator, "classes_"), 64),
        "out_of_sample_proba_": probabilities(None, None),
    }
)
class GlobalBlend(GroupAwareCalibrator, GlobalCalibrator):
    r"""Average the global maps by how they do out of sample, shrunk towards doing nothing.

    Each map predicts every calibration item without having seen it (or its group). The weights of
    :math:`q = \sum_j v_j q_j` then minimise the log loss of these predictions, after a few
    imagined items were added for which the classifier's own probabilities are right and the maps
    are not. So what few items seem to show is not believed, and many items decide by themselves.
    Half an item more is imagined on which what was said turns out wrong, so that few items do not
    confirm a stated certainty.

    Parameters
    ----------
    prior_items : float, default=3.0
        How many items are imagined (of items in groups: how many groups), twice as many with more
        than two classes. 0 trusts the maps fully, a large value leaves everything as it is.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.
    random_state : int, default=0
        Seed of the folds.

    Attributes
    ----------
    names_ : list of str
        The maps that were tried, ``"uncalibrated"`` first.
    weights_ : ndarray of shape (J,)
        Their weights; zero below 1 %.
    maps_ : list of calibrators
        The maps with a weight, in the order of ``names_``.
    out_of_sample_proba_ : ndarray of shape (n, K)
        Predictions of the calibration items by maps and weights that have not seen their fold.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    Examples
    --------
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(500, miscalibration=1.0, random_state=0)
    >>> calibrator = GlobalBlend().fit(None, data.y, y_proba=data.y_proba)
    >>> dict(zip(calibrator.names_, calibrator.weights_.round(2).tolist(), strict=True))
    {'uncalibrated': 0...}
    """

    out_of_sample_proba_: Matrix

    def __init__(self, *, prior_items: float = 3.0, classes: Any = None, random_state: int = 0):
        super().__init__(classes=classes)
        self.prior_items = prior_items
        self.random_state = random_state

    def fit_set(self, items: CalibrationSet) -> Self:
        """Fit to items that were checked already, groups included."""
        # Before the inherited fit in the order of classes, so that checked items stay checked.
        return super().fit_set(items)

    def _fit_items(self, items: CalibrationSet) -> None:
        check_non_negative(self, "prior_items")
        rows = np.flatnonzero(items.weights > 0)
        learned = items.take(rows)
        with warnings.catch_warnings():
            # A map that did not converge shows in its out-of-sample predictions.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._learn(learned)
        if learned.n_items < items.n_items:  # items of weight 0 are predicted as new ones
            predicted = self.predict_set(items)
            predicted[rows] = self.out_of_sample_proba_
            self.out_of_sample_proba_ = predicted

    def _learn(self, items: CalibrationSet) -> None:
        tried = candidates(items)
        folds = Folds.make(items.n_items, seed=self.random_state, groups=items.groups)
        predictions = out_of_sample(_fold_maps(tried, items), folds, items.n_items)
        self.names_ = list(tried)
        self.weights_ = self._weigh(predictions, items)
        self.out_of_sample_proba_ = self._cross_fitted(predictions, items, folds)
        kept = [map_ for map_, w in zip(tried.values(), self.weights_, strict=True) if w > 0]
        self.maps_ = [_fitted(map_, items) for map_ in kept]

    def _weigh(self, predictions: Matrix, items: CalibrationSet) -> Vector:
        """Return weights by out-of-sample log loss, those below one percent set to zero."""
        truth = predictions[:, np.arange(items.n_items), items.codes]
        other = (1.0 - truth) / (items.n_classes - 1)
        no_map = np.full((len(truth), 1), _RIVALS)
        no_map[0] = 1.0
        total = items.counts.sum()
        units = total if items.groups is None else np.unique(items.groups).shape[0]
        n_no_map = self.prior_items * min(items.n_classes - 1, 2)
        v = mixture_weights(
            np.maximum(np.hstack([truth, other, no_map]), _LEAST_LIKELIHOOD),
            np.hstack([items.counts, items.counts * _SURPRISES / units, n_no_map * total / units]),
        )
        v = np.where(v < min(_LEAST_WEIGHT, v.max()), 0.0, v)
        return v / v.sum()

    def _cross_fitted(self, predictions: Matrix, items: CalibrationSet, folds: Folds) -> Matrix:
        def learn(train: Rows) -> Callable[[Rows], Matrix]:
            v = self._weigh(predictions[:, train], items.take(train))
            return lambda test: np.tensordot(v, predictions[:, test], axes=1)

        return out_of_sample(learn, folds, items.n_items)

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        raise NotImplementedError("GlobalBlend is fitted to a CalibrationSet.")

    def _apply_map(self, scores: Scores) -> Matrix:
        weights = self.weights_[self.weights_ > 0]
        parts = zip(weights, self.maps_, strict=True)
        return np.sum([w * map_._apply_map(scores) for w, map_ in parts], axis=0)

    def _check_restored(self) -> None:
        super()._check_restored()
        same = len(self.names_) == len(self.weights_) > 0
        expect(same, self, "has not one weight per map")
        expect(abs(self.weights_.sum() - 1) < 1e-6, self, "has weights that do not sum to one")
        expect(len(self.maps_) == np.count_nonzero(self.weights_), self, "has other maps")
        same = all(len(map_.classes_) == len(self.classes_) for map_ in self.maps_)
        expect(same, self, "has a map for other classes")


def _fold_maps(
    tried: dict[str, GlobalCalibrator], items: CalibrationSet
) -> Callable[[Rows], Callable[[Rows], Matrix]]:
    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        part = items.take(train)
        maps = [_fitted(map_, part) for map_ in tried.values()]
        return lambda test: np.stack([map_._apply_map(items.scores.take(test)) for map_ in maps])

    return learn


def _fitted(map_: GlobalCalibrator, items: CalibrationSet) -> GlobalCalibrator:
    map_ = clone(map_)
    map_.classes_ = np.arange(items.n_classes)
    map_._fit_map(items.scores, items.codes, items.counts)
    return map_
