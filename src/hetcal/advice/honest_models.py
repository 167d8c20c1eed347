"""Honest predictions for the calibration items: global maps, and models trained on the items.

Nothing in row i of any result depends on the label of item i.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning

from hetcal._compat import threadpool_limits
from hetcal.advice.items import CalibrationItems, Matrix, Rows
from hetcal.calibration.registry import get_calibrator
from hetcal.kernels import forest as kernel
from hetcal.metrics.scores import brier_losses

_MAPS = ("temperature", "bcts", "beta")
_ISOTONIC_ITEMS = 200
_N_TREES = 100
_OUT_OF_BAG = 0.37  # share of the trees that have not drawn an item, and vote about it
_SMALLEST_LEAF = 3
# Boosting is left out where items x features x classes would make it take many seconds.
_BOOSTING_COST = 1_500_000


def map_names(items: CalibrationItems) -> tuple[str, ...]:
    """Return the global maps that are tried."""
    return (*_MAPS, "isotonic") if items.n_items >= _ISOTONIC_ITEMS else _MAPS


def cross_fitted_maps(items: CalibrationItems, fold: Rows) -> dict[str, Matrix]:
    """Return what each global map, fitted to the other folds, says about every item."""
    K = items.classes.shape[0]
    said = {name: np.empty((items.n_items, K)) for name in map_names(items)}
    for number in np.unique(fold):
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        _check_classes_left(items, train)
        for name, Q in said.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fitted = get_calibrator(name, classes=np.arange(K)).fit(
                    None,
                    items.codes[train],
                    sample_weight=items.weights[train],
                    **items.output_of(train),
                )
            Q[test] = fitted.predict_proba(None, **items.output_of(test))
    return said


def _check_classes_left(items: CalibrationItems, train: Rows) -> None:
    """Say so where every item of a class is in the groups that are held out together."""
    left = items.classes[np.unique(items.codes[train])]
    if left.shape[0] < 2:
        raise ValueError(
            "advise predicts no item from its own group, but without the held-out groups only "
            f"class {left.tolist()[0]!r} is left to learn from. Pass groups that hold several "
            "classes (not the label itself), more groups, or groups=None if the rows are "
            "independent."
        )


def best_of(
    said: dict[str, Matrix], truth: Matrix, weight: Matrix, fold: Rows
) -> tuple[str, Matrix]:
    """Return the name of the best, and predictions of whichever was best on the other folds.

    So the choice is paid for too: an item has no part in choosing who predicts it.
    """
    names = list(said)
    losses = np.stack([brier_losses(said[name], truth) for name in names])
    chosen = np.empty_like(truth)
    for number in np.unique(fold):
        out = fold == number
        best = names[int(np.argmin(losses[:, ~out] @ weight[~out]))]
        chosen[out] = said[best][out]
    return names[int(np.argmin(losses @ weight))], chosen


def retrained(
    features: Matrix,
    items: CalibrationItems,
    fold: Rows,
    *,
    with_boosting: bool,
    seed: int,
    n_jobs: int | None,
) -> dict[str, Matrix]:
    """Return what models trained on the features of the items alone say: a forest, and boosting.

    Boosting is the dearer one; the caller says where it could make a difference.
    """
    K = items.classes.shape[0]
    said = {"forest": forest_vote(features, items, fold, seed=seed, n_jobs=n_jobs)}
    if with_boosting and features.size * (1 if K == 2 else K) <= _BOOSTING_COST:
        said["boosting"] = boosted(features, items, fold, seed)
    return said


def forest_vote(
    Z: Matrix, items: CalibrationItems, fold: Rows, *, seed: int, n_jobs: int | None
) -> Matrix:
    """Return a forest's vote by the trees that have not seen the item (or its group)."""
    if items.groups is not None:
        return _votes_by_fold(Z, items, fold, seed, n_jobs)
    everyone = np.arange(items.n_items)
    forest, leaves, mass = _grown(Z, items, everyone, seed, n_jobs)
    unseen = kernel.out_of_bag_leaves(forest, leaves)
    return _shares(kernel.vote_leaves(unseen, mass), items)


def forest_vote_from_half(
    Z: Matrix, items: CalibrationItems, half: Rows, *, seed: int, n_jobs: int | None
) -> Matrix:
    """Return the vote of a forest that was grown on the other half of the items.

    It has as many trees as vote in :func:`forest_vote`, so that only the items differ.
    """
    n_trees = _N_TREES if items.groups is not None else round(_OUT_OF_BAG * _N_TREES)
    return _votes_by_fold(Z, items, half, seed, n_jobs, n_trees)


def forest_votes_of_both(
    Z: Matrix, items: CalibrationItems, fold: Rows, Z_new: Matrix, scorer: Rows, *, seed: int
) -> tuple[Matrix, Matrix]:
    """Return votes on the items and on new ones, each by the forest grown without one fold.

    An item is left to the forest that has not seen its fold, a new one to that of ``scorer``. Votes
    are mixed with a little of the class frequencies: no class is ruled out.
    """
    votes, new_votes = (np.empty((len(A), items.classes.shape[0])) for A in (Z, Z_new))
    for number in np.unique(fold):
        forest, _, mass = _grown(Z, items, np.flatnonzero(fold != number), seed, None)
        for out, rows, of in ((votes, fold == number, Z), (new_votes, scorer == number, Z_new)):
            if rows.any():
                out[rows] = kernel.vote(forest, of[rows], mass, None)
    frequencies = np.bincount(items.codes, items.weights, items.classes.shape[0])
    one_vote = frequencies / frequencies.sum() / _N_TREES
    votes, new_votes = (
        (_shares(Q, items) + one_vote) / (1 + 1 / _N_TREES) for Q in (votes, new_votes)
    )
    return votes, new_votes


def _votes_by_fold(
    Z: Matrix,
    items: CalibrationItems,
    fold: Rows,
    seed: int,
    n_jobs: int | None,
    n_trees: int = _N_TREES,
) -> Matrix:
    Q = np.empty((items.n_items, items.classes.shape[0]))
    for number in np.unique(fold):
        test = fold == number
        forest, _, mass = _grown(Z, items, np.flatnonzero(~test), seed, n_jobs, n_trees)
        Q[test] = kernel.vote(forest, Z[test], mass, n_jobs)
    return _shares(Q, items)


def _grown(
    Z: Matrix,
    items: CalibrationItems,
    rows: Rows,
    seed: int,
    n_jobs: int | None,
    n_trees: int = _N_TREES,
) -> tuple[kernel.Forest, NDArray[np.int32], kernel.LeafMass]:
    """Grow a forest; splits count items (the core's forests do), leaves their weights."""
    K = items.classes.shape[0]
    weight = None if items.weight is None else items.weight[rows]
    forest = kernel.fit_forest(
        Z[rows],
        items.codes[rows],
        K,
        n_estimators=n_trees,
        min_samples_leaf=_SMALLEST_LEAF,
        random_state=seed,
        n_jobs=n_jobs,
    )
    leaves = kernel.apply(forest, Z[rows], n_jobs)
    return forest, leaves, kernel.leaf_frequencies(forest, leaves, items.codes[rows], K, weight)


def _shares(votes: Matrix, items: CalibrationItems) -> Matrix:
    """Scale votes to one; an item without any (every tree drew it) gets the class frequencies."""
    frequencies = np.bincount(items.codes, items.weights, items.classes.shape[0])
    total = votes.sum(axis=1, keepdims=True)
    filled = np.tile(frequencies / frequencies.sum(), (votes.shape[0], 1))
    return np.divide(votes, total, out=filled, where=total > 0)


def boosted(features: Matrix, items: CalibrationItems, fold: Rows, seed: int) -> Matrix:
    """Return what gradient boosting says of each item, trained without the item's fold."""
    Q = np.zeros((items.n_items, items.classes.shape[0]))
    for number in np.unique(fold):
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        # A column without any value cannot be binned.
        known = ~np.isnan(features[train]).all(axis=0)
        model = HistGradientBoostingClassifier(
            learning_rate=0.06,
            max_iter=100,
            max_leaf_nodes=12,
            l2_regularization=1.0,
            min_samples_leaf=int(np.clip(train.size // 40, 3, 20)),
            early_stopping=False,
            random_state=seed,
        )
        # Small sets gain nothing from threads, and on a busy machine waiting threads cost a lot.
        with threadpool_limits(1, user_api="openmp"):
            model.fit(
                features[train][:, known],
                items.codes[train],
                sample_weight=None if items.weight is None else items.weight[train],
            )
            Q[np.ix_(test, model.classes_)] = model.predict_proba(features[test][:, known])
    return Q
