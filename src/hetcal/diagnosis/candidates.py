"""Out-of-sample predictions of the calibration items: global maps, models trained on the items.

Nothing in row i of any result depends on the label of item i.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from hetcal._typing import Matrix, Rows
from hetcal.calibration.fitting import cross_fitted, fitted_to
from hetcal.calibration.hybrid.library import BOOSTING_COST
from hetcal.calibration.registry import get_calibrator
from hetcal.data import CalibrationSet, Folds, out_of_sample
from hetcal.kernels import forest as kernel
from hetcal.kernels.binned_features import BinnedFeatures, bin_features
from hetcal.kernels.boosting_binned import BinnedBoosting
from hetcal.kernels.forest_binned import BinnedForest
from hetcal.metrics.scores import brier_losses

#: What "a global map" means: the average of maps that shrinks towards none.
GLOBAL_MAP = "global"
_MAPS = ("temperature", "bcts", "beta")
_ISOTONIC_ITEMS = 200
# The plain models, here and in a comparison.
N_TREES = 100
SMALLEST_LEAF = 3
BOOSTING = BinnedBoosting(n_rounds=100, learning_rate=0.06, n_leaves=12, l2=1.0)
_OUT_OF_BAG = 0.37  # share of the trees that have not drawn an item, and vote about it


def map_names(items: CalibrationSet) -> tuple[str, ...]:
    """Return the single global maps that are shown beside their average."""
    return (*_MAPS, "isotonic") if items.n_items >= _ISOTONIC_ITEMS else _MAPS


def cross_fitted_maps(items: CalibrationSet, folds: Folds, seed: int) -> dict[str, Matrix]:
    """Return what each global map, fitted to the other folds, says about every item.

    The average of maps comes first; its weights are cross-fitted too, so nothing is chosen in
    hindsight.
    """
    for train, _ in folds:
        _check_classes_left(items, train)
    averaged = get_calibrator(GLOBAL_MAP, random_state=seed)
    said = {GLOBAL_MAP: fitted_to(averaged, items).out_of_sample_proba_}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        single = {n: cross_fitted(get_calibrator(n), items, folds) for n in map_names(items)}
    return said | single


def _check_classes_left(items: CalibrationSet, train: Rows) -> None:
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
    predictions: dict[str, Matrix], items: CalibrationSet, folds: Folds
) -> tuple[str, Matrix]:
    """Return the name of the best, and predictions of whichever was best on the other folds.

    So the choice is paid for too: an item has no part in choosing who predicts it.
    """
    names = list(predictions)
    losses = np.stack([brier_losses(predictions[name], items.codes) for name in names])
    losses = losses * items.weights

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        best = predictions[names[int(losses[:, train].sum(axis=1).argmin())]]
        return lambda test: best[test]

    return names[int(losses.sum(axis=1).argmin())], out_of_sample(learn, folds, items.n_items)


def boosting_is_affordable(items: CalibrationSet) -> bool:
    """Say whether cross-fitted boosting takes seconds: by items x features x classes."""
    K = items.n_classes
    return items.features().size * (1 if K == 2 else K) <= BOOSTING_COST


def retrained(
    items: CalibrationSet, folds: Folds, *, with_boosting: bool, seed: int, n_jobs: int | None
) -> dict[str, Matrix]:
    """Return what models trained on the features of the items alone say: a forest, and boosting.

    Boosting costs more; the caller says where it could make a difference.
    """
    features = items.features()
    predictions = {"forest": forest_vote(features, items, seed=seed, n_jobs=n_jobs)}
    if with_boosting and boosting_is_affordable(items):
        predictions["boosting"] = boosted(items.binned(), items, folds)
    return predictions


def forest_vote(Z: Matrix, items: CalibrationSet, *, seed: int, n_jobs: int | None) -> Matrix:
    """Return a forest's vote by the trees that have not seen the item (or its group)."""
    forest, leaves, mass = _grown(Z, items, np.arange(items.n_items), seed, n_jobs)
    unseen = kernel.out_of_bag_leaves(forest, leaves)
    return _shares(kernel.vote_leaves(unseen, mass), items)


def forest_vote_from_half(
    Z: Matrix, items: CalibrationSet, halves: Folds, *, seed: int, n_jobs: int | None
) -> Matrix:
    """Return the vote of a forest that was grown on the other half of the items.

    It has as many trees as vote in :func:`forest_vote`, so that only the items differ.
    """
    n_trees = N_TREES if items.groups is not None else round(_OUT_OF_BAG * N_TREES)
    return _votes_by_fold(Z, items, halves, seed, n_jobs, n_trees)


def forest_votes_of_both(
    Z: Matrix, items: CalibrationSet, folds: Folds, Z_new: Matrix, scorer: Rows, *, seed: int
) -> tuple[Matrix, Matrix]:
    """Return votes on the items and on new ones, each by the forest grown without one fold.

    An item is left to the forest that has not seen its fold, a new one to that of ``scorer``. Votes
    are mixed with a little of the class frequencies: no class is ruled out.
    """
    votes, new_votes = (np.empty((len(A), items.n_classes)) for A in (Z, Z_new))
    for number, (train, test) in enumerate(folds):
        forest, _, mass = _grown(Z, items, train, seed, None)
        votes[test] = kernel.vote(forest, Z[test], mass, None)
        new = scorer == number
        if new.any():
            new_votes[new] = kernel.vote(forest, Z_new[new], mass, None)
    one_vote = _frequencies(items) / N_TREES
    votes, new_votes = (
        (_shares(Q, items) + one_vote) / (1 + 1 / N_TREES) for Q in (votes, new_votes)
    )
    return votes, new_votes


def _votes_by_fold(
    Z: Matrix,
    items: CalibrationSet,
    folds: Folds,
    seed: int,
    n_jobs: int | None,
    n_trees: int = N_TREES,
) -> Matrix:
    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        forest, _, mass = _grown(Z, items, train, seed, n_jobs, n_trees)
        return lambda test: kernel.vote(forest, Z[test], mass, n_jobs)

    return _shares(out_of_sample(learn, folds, items.n_items), items)


def _grown(
    Z: Matrix,
    items: CalibrationSet,
    rows: Rows,
    seed: int,
    n_jobs: int | None,
    n_trees: int = N_TREES,
) -> tuple[kernel.Forest, NDArray[np.int32], kernel.LeafMass]:
    """Grow a forest that draws whole groups; splits count items, leaves their weights."""
    part = items.take(rows)
    engine = BinnedForest(n_trees, min_samples_leaf=SMALLEST_LEAF, random_state=seed, n_jobs=n_jobs)
    forest = engine.fit_classes(
        bin_features(Z[rows]), part.codes, part.n_classes, groups=part.groups
    )
    leaves = kernel.apply(forest, Z[rows], n_jobs)
    mass = kernel.leaf_frequencies(forest, leaves, part.codes, part.n_classes, part.weight)
    return forest, leaves, mass


def _frequencies(items: CalibrationSet) -> Matrix:
    mass = np.bincount(items.codes, items.weights, items.n_classes)
    return mass / mass.sum()


def _shares(votes: Matrix, items: CalibrationSet) -> Matrix:
    """Scale votes to one; an item without any (every tree drew it) gets the class frequencies."""
    total = votes.sum(axis=1, keepdims=True)
    filled = np.tile(_frequencies(items), (votes.shape[0], 1))
    return np.divide(votes, total, out=filled, where=total > 0)


def boosted(binned: BinnedFeatures, items: CalibrationSet, folds: Folds) -> Matrix:
    """Return what gradient boosting says of each item, trained without the item's fold."""
    return BOOSTING.out_of_fold(
        *(binned, items.codes, items.n_classes, folds.number),
        least_weight=np.array([least_in_leaf(train.size) for train, _ in folds]),
        weight=items.unequal_counts,
    )


def least_in_leaf(n_items: int) -> int:
    """Return how many items a leaf of boosting must hold."""
    return int(np.clip(n_items // 40, 3, 20))
