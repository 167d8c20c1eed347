"""Forests on binned features: classes or real targets, missing values, weights, whole groups drawn.

The engine for all that need not be scikit-learn's forest tree for tree. A split is chosen by what
it takes off the variance of the targets, added over the targets; one-hot targets make that the Gini
impurity. Missing values go to the side where they take off more.

The compiled core and the pure twin grow the same trees: every random number is a function of the
tree's seed and the node's place (splitmix64), so that neither threads nor the order of growing
matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hetcal._typing import Matrix, Vector
from hetcal.kernels._backend import native
from hetcal.kernels._checks import check_indices, check_length, expect
from hetcal.kernels._forest_binned_pure import grow_tree
from hetcal.kernels.binned_features import BinnedFeatures
from hetcal.kernels.forest_fit import join_trees, resolve_max_features
from hetcal.kernels.forest_model import Forest, assemble
from hetcal.kernels.parallel import n_threads, n_workers, pieces, spread

_ITEMS_PER_CALL = 3_000_000  # trees x items between two chances to interrupt
# A unit is drawn at most so many times as often as the mean, so that one tree in 20 lacks it.
_MOST_OFTEN, _CAPPED = 3.0, 20
_WORTH_SPREADING = 10_000_000  # trees x items: a second of work, far more than it takes to send it


@dataclass(frozen=True)
class BinnedForest:
    """How to grow a forest on binned features.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    max_features : {"sqrt", "log2"}, int, float or None
        Features that a node looks at, as in :class:`sklearn.ensemble.RandomForestClassifier`.
    min_samples_leaf : float
        Items that a leaf must hold, however often each was drawn.
    splitter : {"best", "random"}
        Best threshold of each feature (random forest), or one random threshold each (extra-trees).
    bootstrap : bool
        Whether each tree draws as many items, or groups, as there are, with replacement; the
        heavier, the more often.
    random_state : int
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Examples
    --------
    >>> from hetcal.kernels.binned_features import bin_features
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> forest = BinnedForest(n_estimators=10).fit_classes(bin_features(X), X[:, 0] > 0, 2)
    >>> forest.n_trees, forest.in_bag.shape
    (10, (10, 200))
    """

    n_estimators: int = 100
    max_features: str | int | float | None = "sqrt"
    min_samples_leaf: float = 1
    splitter: str = "best"
    bootstrap: bool = True
    random_state: int = 0
    n_jobs: int | None = 1

    def __post_init__(self) -> None:
        if self.splitter not in ("best", "random"):
            raise ValueError(
                f'BinnedForest: splitter must be "best" or "random"; got {self.splitter!r}.'
            )

    def fit_classes(
        self,
        binned: BinnedFeatures,
        codes: ArrayLike,
        n_classes: int,
        *,
        weight: Vector | None = None,
        groups: NDArray[np.int64] | None = None,
    ) -> Forest:
        """Grow trees that separate classes.

        Parameters
        ----------
        binned : BinnedFeatures
        codes : array-like of int, shape (n_items,)
            Class of each item, in [0, n_classes).
        n_classes : int
        weight : ndarray of shape (n_items,), optional
            How many items each row stands for; more than 0. Heavy rows are drawn more often.
        groups : ndarray of shape (n_items,), optional
            Group numbers 0..G-1. Trees draw whole groups, so that a group is in bag or out of bag.
        """
        labels = np.require(codes, np.int32, ["C", "A"])
        check_length("BinnedForest", "codes", labels, binned.n_items)
        check_indices("BinnedForest", "codes", labels, n_classes)
        return self._fit(binned, (labels, max(int(n_classes), 2)), weight, groups)

    def fit_values(
        self,
        binned: BinnedFeatures,
        targets: Matrix,
        *,
        weight: Vector | None = None,
        groups: NDArray[np.int64] | None = None,
    ) -> Forest:
        """Grow trees that separate real targets, shape (n_items, n_targets).

        Everything else as in :meth:`fit_classes`.
        """
        targets = np.require(targets, np.float64, ["C", "A"])
        shaped = targets.ndim == 2 and len(targets) == binned.n_items and targets.shape[1] > 0
        expect(shaped, "BinnedForest", f"targets must have {binned.n_items} rows", targets.shape)
        expect(np.isfinite(targets).all(), "BinnedForest", "targets must be finite", "others")
        return self._fit(binned, (targets,), weight, groups)

    def _fit(
        self,
        binned: BinnedFeatures,
        targets: tuple[Any, ...],
        weight: Vector | None,
        groups: NDArray[np.int64] | None,
    ) -> Forest:
        units, up_to, per_draw = self._units(binned.n_items, weight, groups)
        settings = (
            units.astype(np.int32),
            int(units.max()) + 1,
            up_to,
            per_draw,
            resolve_max_features(self.max_features, binned.n_features),
            float(self.min_samples_leaf),
            bool(self.bootstrap),
            self.splitter == "random",
        )
        given = (*(binned.codes, binned.low, binned.high), *targets, *settings)
        rng = np.random.default_rng(self.random_state)
        seeds = rng.integers(2**64, size=self.n_estimators, dtype=np.uint64)
        return self._grow(given, seeds, binned.n_features)

    def weight_per_draw(
        self, n_items: int, weight: Vector | None, groups: NDArray[np.int64] | None
    ) -> Vector:
        """Return what a row counts in a tree each time it is drawn.

        Where rows are drawn in proportion to their weights that is 1. Rows of a group are drawn
        together and differ in what they count; and a row is drawn at most three times as often as
        others, lest it be out of bag nowhere.
        """
        return self._units(n_items, weight, groups)[2]

    def _units(
        self, n: int, weight: Vector | None, groups: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int64], Vector, Vector]:
        """Return what is drawn together, cumulative shares in the draw (or none), and weights."""
        units = np.arange(n) if groups is None else np.asarray(groups)
        check_length("BinnedForest", "groups", units, n)
        check_indices("BinnedForest", "groups", units, n)
        if weight is None:
            return units, np.empty(0), np.ones(n)
        weight = np.require(weight, np.float64, ["C", "A"])
        check_length("BinnedForest", "weight", weight, n)
        positive = bool((weight > 0).all() and np.isfinite(weight).all())
        expect(positive, "BinnedForest", "weight must be positive and finite", "others")
        if not self.bootstrap:
            return units, np.empty(0), weight
        mean = np.bincount(units, weight) / np.maximum(np.bincount(units), 1)
        share = mean
        for _ in range(_CAPPED):  # what is cut off lowers the mean
            share = np.minimum(mean, _MOST_OFTEN * share.mean())
        return units, np.cumsum(share), weight / share[units]

    def _grow(self, given: tuple[Any, ...], seeds: NDArray[np.uint64], n_features: int) -> Forest:
        """Grow the trees, here or by the workers that the user named."""
        worth = len(seeds) * given[0].shape[1] >= _WORTH_SPREADING
        workers = n_workers(self.n_jobs) if worth else 1
        if workers > 1:
            cuts = pieces(np.ones(len(seeds)), workers)
            grown = spread(_grow_some, ((given, seeds[cut], 1) for cut in cuts), self.n_jobs)
        else:
            grown = iter([_grow_some(given, seeds, n_threads(self.n_jobs))])
        parts = list(grown)
        nodes, offset = join_trees([(some, place) for some, _, place in parts])
        in_bag = np.concatenate([drawn for _, drawn, _ in parts]) if self.bootstrap else None
        feature, threshold, left, right, missing_left = nodes
        return assemble(feature, threshold, left, right, missing_left, offset, n_features, in_bag)


def _grow_some(
    given: tuple[Any, ...], seeds: NDArray[np.uint64], threads: int
) -> tuple[list[NDArray], NDArray[np.uint8], NDArray[np.int64]]:
    """Grow trees a few at a time, so that a long fit can be interrupted.

    Returns the arrays of their nodes, how often each tree drew each item, and where each tree's
    nodes begin.
    """
    n_items, bootstrap = given[0].shape[1], given[-2]
    in_bag = np.empty((len(seeds) if bootstrap else 0, n_items), dtype=np.uint8)
    core = native()
    if core is None:
        grown = [grow_tree(given, int(seed), in_bag[t : t + 1]) for t, seed in enumerate(seeds)]
    else:
        fitter = core.BinnedForestFitter(*given)
        step = max(1, _ITEMS_PER_CALL // (n_items * threads)) * threads
        grown = [
            fitter.grow(seeds[first : first + step], in_bag[first : first + step], threads)
            for first in range(0, len(seeds), step)
        ]
    nodes, offset = join_trees([(part[:-1], part[-1]) for part in grown])
    return nodes, in_bag, offset
