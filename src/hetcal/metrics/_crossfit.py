"""Out-of-sample estimates of P(y | p) and P(y | x): no item is predicted from its own label."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sklearn

from hetcal._typing import Matrix, Rows
from hetcal.data import CalibrationSet, Folds, out_of_sample
from hetcal.kernels.isotonic import isotonic_fit
from hetcal.metrics.ece import bin_of

# A float32 tree cannot tell 1 - 1e-12 from 1; the logarithm of the other columns can.
_SMALLEST = 1e-12


def isotonic_in_sample(items: CalibrationSet) -> Matrix:
    """Return the isotonic regression of each class's outcome on its probability."""
    everything = np.arange(items.n_items)
    return _isotonic(items, everything, everything)


def bin_frequencies(items: CalibrationSet, n_bins: int) -> Matrix:
    """Return the observed frequency of each class in its equal-mass bin."""
    Y, w = items.onehot, items.weights
    C = np.empty_like(items.proba)
    for k in range(items.n_classes):
        bins = bin_of(items.proba[:, k], w, "equal-mass", n_bins)
        mass = np.bincount(bins, weights=w)
        C[:, k] = (np.bincount(bins, weights=w * Y[:, k]) / np.where(mass > 0, mass, 1.0))[bins]
    return C


def recalibrated(items: CalibrationSet, folds: Folds) -> Matrix:
    """Return cross-fitted isotonic recalibration, shrunk towards the probabilities themselves."""

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        return lambda test: _isotonic(items, train, test)

    C = out_of_sample(learn, folds, items.n_items)
    return _shrunk(items.proba, C, items, folds)


def locally_estimated(
    items: CalibrationSet, C: Matrix, folds: Folds, random_state: int | None
) -> Matrix:
    """Return a cross-fitted forest on features and probabilities, shrunk towards ``C``."""
    features = np.hstack([items.features(), np.log(np.maximum(items.proba, _SMALLEST))])
    codes, weight = items.codes, items.weights

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        forest = sklearn.ensemble.RandomForestClassifier(
            min_samples_leaf=5, random_state=random_state
        )
        forest.fit(features[train], codes[train], sample_weight=weight[train])

        def predict(test: Rows) -> Matrix:
            Q = np.zeros((test.shape[0], items.n_classes))
            Q[:, forest.classes_] = forest.predict_proba(features[test])
            return Q

        return predict

    return _shrunk(C, out_of_sample(learn, folds, items.n_items), items, folds)


def _isotonic(items: CalibrationSet, train: Rows, test: Rows) -> Matrix:
    P, Y, w = items.proba, items.onehot, items.weights
    columns = []
    for k in range(items.n_classes):
        thresholds, levels = isotonic_fit(P[train, k], Y[train, k], w[train])
        columns.append(np.interp(P[test, k], thresholds, levels))
    return np.column_stack(columns)


def _shrunk(base: Matrix, candidate: Matrix, items: CalibrationSet, folds: Folds) -> Matrix:
    """Blend base + a (candidate - base), with a in [0, 1] of least Brier score in the other folds.

    A noisy candidate would otherwise lose to the base, and a part that is zero come out negative.
    """
    step, gap = candidate - base, items.onehot - base
    along = items.weights * np.einsum("ij,ij->i", step, gap)
    length = items.weights * np.einsum("ij,ij->i", step, step)

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        share = along[train].sum() / max(length[train].sum(), np.finfo(np.float64).tiny)
        return lambda test: base[test] + np.clip(share, 0.0, 1.0) * step[test]

    return out_of_sample(learn, folds, items.n_items)
