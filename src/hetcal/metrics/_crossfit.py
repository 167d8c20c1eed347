"""Out-of-sample estimates of P(y | p) and P(y | x): no item is predicted from its own label."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from hetcal._typing import Rows
from hetcal.data import Folds, out_of_sample
from hetcal.kernels.isotonic import isotonic_fit
from hetcal.metrics._scored import Matrix, Scored
from hetcal.metrics.ece import bin_of

# A float32 tree cannot tell 1 - 1e-12 from 1; the logarithm of the other columns can.
_SMALLEST = 1e-12


def isotonic_in_sample(scored: Scored) -> Matrix:
    """Return the isotonic regression of each class's outcome on its probability."""
    everything = np.arange(scored.n_items)
    return _isotonic(scored, everything, everything)


def bin_frequencies(scored: Scored, n_bins: int) -> Matrix:
    """Return the observed frequency of each class in its equal-mass bin."""
    Y, w = scored.outcomes, scored.weight
    C = np.empty_like(scored.proba)
    for k in range(scored.n_classes):
        bins = bin_of(scored.proba[:, k], w, "equal-mass", n_bins)
        mass = np.bincount(bins, weights=w)
        C[:, k] = (np.bincount(bins, weights=w * Y[:, k]) / np.where(mass > 0, mass, 1.0))[bins]
    return C


def recalibrated(scored: Scored, folds: Folds) -> Matrix:
    """Return cross-fitted isotonic recalibration, shrunk towards the probabilities themselves."""

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        return lambda test: _isotonic(scored, train, test)

    C = out_of_sample(learn, folds, scored.n_items)
    return _shrunk(scored.proba, C, scored, folds)


def locally_estimated(
    scored: Scored,
    X: Matrix,
    C: Matrix,
    folds: Folds,
    random_state: int | None,
) -> Matrix:
    """Return a cross-fitted forest on features and probabilities, shrunk towards ``C``."""
    features = np.hstack([X, np.log(np.maximum(scored.proba, _SMALLEST))])

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        forest = RandomForestClassifier(min_samples_leaf=5, random_state=random_state)
        forest.fit(features[train], scored.codes[train], sample_weight=scored.weight[train])

        def predict(test: Rows) -> Matrix:
            Q = np.zeros((test.shape[0], scored.n_classes))
            Q[:, forest.classes_] = forest.predict_proba(features[test])
            return Q

        return predict

    return _shrunk(C, out_of_sample(learn, folds, scored.n_items), scored, folds)


def _isotonic(scored: Scored, train: NDArray[np.int64], test: NDArray[np.int64]) -> Matrix:
    P, Y, w = scored.proba, scored.outcomes, scored.weight
    columns = []
    for k in range(scored.n_classes):
        thresholds, levels = isotonic_fit(P[train, k], Y[train, k], w[train])
        columns.append(np.interp(P[test, k], thresholds, levels))
    return np.column_stack(columns)


def _shrunk(base: Matrix, candidate: Matrix, scored: Scored, folds: Folds) -> Matrix:
    """Blend base + a (candidate - base), with a in [0, 1] of least Brier score in the other folds.

    A noisy candidate would otherwise lose to the base, and a part that is zero come out negative.
    """
    step, gap = candidate - base, scored.outcomes - base
    along = scored.weight * np.einsum("ij,ij->i", step, gap)
    length = scored.weight * np.einsum("ij,ij->i", step, step)

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        share = along[train].sum() / max(length[train].sum(), np.finfo(np.float64).tiny)
        return lambda test: base[test] + np.clip(share, 0.0, 1.0) * step[test]

    return out_of_sample(learn, folds, scored.n_items)
