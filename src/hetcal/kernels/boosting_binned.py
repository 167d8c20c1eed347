"""Gradient boosting on binned features: leaf-wise trees, several fits to the same items at once.

Each tree may use every feature, so this is the boosting for tables;
:mod:`hetcal.kernels.boosting` is the one for hundreds of columns. Missing values go to the side
where they gain more. Derivatives of the loss are summed as whole numbers, which depends on no
order: the compiled core and the pure twin grow the same trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix, Vector
from hetcal.kernels._backend import native
from hetcal.kernels._boosting_binned_pure import MISSING_SLOT, grow_trees_pure
from hetcal.kernels._checks import check_indices, check_length, expect
from hetcal.kernels.binned_features import MISSING, BinnedFeatures
from hetcal.kernels.boosted_trees import BoostedTrees
from hetcal.kernels.boosting import _derivatives, _first_scores, _probabilities
from hetcal.kernels.parallel import n_threads

# Sums must stay below 2**52 (slopes, exact as floating-point numbers) and 2**31 (the others).
_SLOPE_BITS, _HALF_BITS = 52, 31


class Slots(NamedTuple):
    """Features in at most 63 bins, for histograms that stay in the fastest memory.

    ``of_items`` has a row per item; slot 63 is for missing values. ``threshold`` is the largest
    value that goes left when a slot is the last to do so, infinite behind the last slot.
    """

    of_items: NDArray[np.uint8]
    threshold: Matrix


class Round(NamedTuple):
    """Trees of one round: arrays of shape (n_fits, n_scores, n_nodes); left is -1 at leaves."""

    feature: NDArray[np.int32]
    left: NDArray[np.int32]
    cut: NDArray[np.uint8]
    missing_left: NDArray[np.uint8]
    value: Matrix


@dataclass(frozen=True)
class BinnedBoosting:
    """How to boost for the logarithmic loss.

    Parameters
    ----------
    n_rounds : int
        Trees per class; with two classes one tree serves both.
    learning_rate : float
    n_leaves : int
        Leaves of a tree; the leaf that gains most is split first.
    l2 : float
        Pull of the leaves' values towards 0; more than 0.

    Examples
    --------
    >>> from hetcal.kernels.binned_features import bin_features
    >>> X = np.arange(8.0)[:, None]
    >>> y = np.repeat([0, 1], 4)
    >>> trees = BinnedBoosting(n_rounds=50).fit(bin_features(X), y, least_weight=1)
    >>> trees.predict_proba(X[[0, 7]]).round(1)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """

    n_rounds: int = 100
    learning_rate: float = 0.1
    n_leaves: int = 12
    l2: float = 1.0

    def __post_init__(self) -> None:
        expect(self.n_leaves >= 2, "BinnedBoosting", "n_leaves must be 2 or more", self.n_leaves)
        expect(self.l2 > 0, "BinnedBoosting", "l2 must be more than 0", self.l2)

    def fit(
        self,
        binned: BinnedFeatures,
        y: NDArray[np.int64],
        *,
        least_weight: float,
        weight: Vector | None = None,
        n_jobs: int | None = 1,
    ) -> BoostedTrees:
        """Boost trees on all items.

        Parameters
        ----------
        binned : BinnedFeatures
        y : ndarray of int, shape (n_items,)
            Labels, of two classes or more.
        least_weight : float
            Least sum of weights in a leaf.
        weight : ndarray of shape (n_items,), optional
            How many items each row stands for; not negative.
        n_jobs : int, optional
            Threads; the result does not depend on it.
        """
        everyone = np.ones((1, binned.n_items), dtype=np.uint8)
        least = np.array([float(least_weight)])
        classes, codes = np.unique(y, return_inverse=True)
        grower = _Grower(self, binned, codes, len(classes), everyone, least, weight, n_jobs)
        rounds = [grower.grow() for _ in range(self.n_rounds)]
        return _joined(rounds, classes, grower.start[0], grower.slots.threshold)

    def out_of_fold(
        self,
        binned: BinnedFeatures,
        codes: NDArray[np.int64],
        n_classes: int,
        fold: NDArray[np.int64],
        *,
        least_weight: Vector,
        weight: Vector | None = None,
        n_jobs: int | None = 1,
    ) -> Matrix:
        """Return probabilities of all items, each from the trees of the other folds.

        Parameters
        ----------
        codes : ndarray of int, shape (n_items,)
            Classes in [0, n_classes).
        fold : ndarray of int, shape (n_items,)
            Fold numbers 0..J-1.
        least_weight : ndarray of shape (J,)
            As in :meth:`fit`, for each fold's fit.
        """
        J = len(least_weight)
        check_length("BinnedBoosting", "fold", fold, binned.n_items)
        check_indices("BinnedBoosting", "fold", fold, J)
        learns = (fold != np.arange(J)[:, None]).astype(np.uint8)
        grower = _Grower(self, binned, codes, n_classes, learns, least_weight, weight, n_jobs)
        for _ in range(self.n_rounds):
            grower.grow()
        return _probabilities(grower.scores[fold, :, np.arange(binned.n_items)].T).T


class _Grower:
    """Fits in the making: the scores of all items in each of them."""

    def __init__(
        self,
        how: BinnedBoosting,
        binned: BinnedFeatures,
        codes: NDArray[np.int64],
        n_classes: int,
        learns: NDArray[np.uint8],
        least_weight: Vector,
        weight: Vector | None,
        n_jobs: int | None,
    ):
        n = binned.n_items
        check_length("BinnedBoosting", "codes", codes, n)
        check_indices("BinnedBoosting", "codes", codes, n_classes)
        self.weight = np.ones(n) if weight is None else np.require(weight, np.float64, ["C", "A"])
        check_length("BinnedBoosting", "weight", self.weight, n)
        total = float(self.weight.sum())
        good = total > 0 and np.isfinite(total) and self.weight.min() >= 0
        expect(good, "BinnedBoosting", "weight must be finite, not negative, not all 0", "others")
        self.how, self.learns, self.threads = how, learns, n_threads(n_jobs)
        self.least_weight = np.require(least_weight, np.float64, ["C", "A"])
        self.slots = make_slots(binned)
        bits = int(np.ceil(np.log2(total)))
        self.units = 2.0 ** (_SLOPE_BITS - bits), 2.0 ** (_HALF_BITS - bits)
        truth = np.eye(n_classes)[:, codes]
        self.truth = truth[1:] if n_classes == 2 else truth
        mass = learns * self.weight
        shares = mass @ self.truth.T / np.maximum(mass.sum(axis=1), 1e-300)[:, None]
        self.start = np.stack([_first_scores(share) for share in shares])
        self.scores = np.repeat(self.start[:, :, None], n, axis=2)

    def grow(self) -> Round:
        """Grow the trees of one round and add what they say to the scores."""
        slope, curvature = np.empty_like(self.scores), np.empty_like(self.scores)
        for j, scores in enumerate(self.scores):
            slope[j], curvature[j] = _derivatives(scores, self.truth, self.weight)
        shape = (*self.scores.shape[:2], 2 * self.how.n_leaves - 1)
        trees = Round(
            np.zeros(shape, np.int32),
            np.full(shape, -1, np.int32),
            np.zeros(shape, np.uint8),
            np.zeros(shape, np.uint8),
            np.zeros(shape),
        )
        given: tuple[Any, ...] = (
            *(self.slots.of_items, self.learns, self.weight, self.least_weight, slope, curvature),
            *(*self.units, self.how.l2, self.how.learning_rate, *trees, self.scores),
        )
        core = native()
        if core is None:
            grow_trees_pure(*given)
        else:
            core.grow_leafwise_trees(*given, self.threads)
        return trees


def make_slots(binned: BinnedFeatures) -> Slots:
    """Join neighbouring bins where a feature has more than 63."""
    n_bins = (~np.isnan(binned.high)).sum(axis=1)[:, None]
    bins = np.arange(MISSING + 1)
    slot = np.where(n_bins > MISSING_SLOT, bins * MISSING_SLOT // np.maximum(n_bins, 1), bins)
    slot = np.where(bins < n_bins, slot, MISSING_SLOT).astype(np.uint8)
    threshold = np.full((binned.n_features, MISSING_SLOT), np.inf)
    feature, last = np.nonzero((slot[:, :-1] < slot[:, 1:]) & (slot[:, 1:] < MISSING_SLOT))
    middle = binned.high[feature, last] / 2.0 + binned.low[feature, last + 1] / 2.0
    threshold[feature, slot[feature, last]] = middle
    of_items = np.take_along_axis(slot, binned.codes.astype(np.intp), axis=1)
    return Slots(np.ascontiguousarray(of_items.T), threshold)


def _joined(
    rounds: list[Round], classes: NDArray[np.int64], start: Vector, threshold: Matrix
) -> BoostedTrees:
    """Return the trees of the first fit one after the other, without the places not used."""
    nodes = Round(
        *(np.concatenate([part[0] for part in parts]) for parts in zip(*rounds, strict=True))
    )
    inner = nodes.left >= 0
    size = 2 * inner.sum(axis=1) + 1
    used = np.arange(nodes.left.shape[1]) < size[:, None]
    offset = np.concatenate([[0], np.cumsum(size)])
    left = np.where(inner, nodes.left + offset[:-1, None], -1)[used].astype(np.int32)
    feature = nodes.feature[used]
    return BoostedTrees(
        feature=feature,
        threshold=np.where(left >= 0, threshold[feature, nodes.cut[used]], 0.0),
        left=left,
        right=np.where(left >= 0, left + 1, -1).astype(np.int32),
        missing_left=nodes.missing_left[used],
        value=nodes.value[used],
        tree_offset=offset.astype(np.int64),
        baseline=start,
        classes_=classes.astype(np.int64),
        n_features=len(threshold),
    )
