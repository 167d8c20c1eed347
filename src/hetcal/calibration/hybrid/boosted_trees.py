"""Boosted trees as plain arrays: what a file keeps of gradient boosting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

from hetcal._stored import expect, stored
from hetcal._stored.fields import MOST_CLASSES, integers, numbers, rising
from hetcal.kernels._checks import check_trees
from hetcal.kernels.forest_model import STORED_TREES

Matrix = NDArray[np.float64]

_MOST_TREES = 1_000_000


@stored(
    STORED_TREES
    | {
        "value": numbers(None),
        "baseline": numbers(None),
        "classes_": integers(None, low=0, high=MOST_CLASSES),
    }
)
@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """The trees of a fitted ``HistGradientBoostingClassifier``; predicts the same to the bit.

    Attributes
    ----------
    feature, left, right : ndarray of int32, shape (n_nodes,)
        As in :class:`hetcal.kernels.forest.Forest`; children are -1 at leaves.
    threshold : ndarray of float64, shape (n_nodes,)
        A row goes left when its value is at most this.
    missing_left : ndarray of uint8, shape (n_nodes,)
        Whether missing values go left.
    value : ndarray of float64, shape (n_nodes,)
        What a leaf adds to the score.
    tree_offset : ndarray of int64, shape (n_trees + 1,)
        Where each tree begins; trees of one round follow each other, one per score.
    baseline : ndarray of shape (n_scores,)
        Score before the first round: one with two classes, else one per class.
    classes_ : ndarray of int
    n_features : int
    """

    feature: NDArray[np.int32]
    threshold: Matrix
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    value: Matrix
    tree_offset: NDArray[np.int64]
    baseline: Matrix
    classes_: NDArray[np.int64]
    n_features: int

    @classmethod
    def from_sklearn(cls, model: HistGradientBoostingClassifier) -> BoostedTrees:
        """Read the trees of a fitted model."""
        nodes = [tree.nodes for round_ in model._predictors for tree in round_]
        if any(tree["is_categorical"].any() for tree in nodes):
            raise TypeError(
                "hetcal.save cannot store boosted trees with splits on categories. Encode the "
                "categories as numbers before the fit."
            )
        offset = np.concatenate([[0], np.cumsum([len(tree) for tree in nodes])])

        def joined(name: str, dtype: Any) -> NDArray:
            return np.concatenate([tree[name] for tree in nodes]).astype(dtype)

        def children(name: str) -> NDArray[np.int32]:
            parts = [
                np.where(tree["is_leaf"] != 0, -1, tree[name].astype(np.int64) + start)
                for tree, start in zip(nodes, offset, strict=False)
            ]
            return np.concatenate(parts).astype(np.int32)

        return cls(
            feature=joined("feature_idx", np.int32),
            threshold=joined("num_threshold", np.float64),
            left=children("left"),
            right=children("right"),
            missing_left=joined("missing_go_to_left", np.uint8),
            value=joined("value", np.float64),
            tree_offset=offset.astype(np.int64),
            baseline=np.asarray(model._baseline_prediction, dtype=np.float64).ravel(),
            classes_=np.asarray(model.classes_, dtype=np.int64),
            n_features=int(model.n_features_in_),
        )

    def predict_proba(self, X: Matrix) -> Matrix:
        """Return the probabilities of ``classes_``."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"The boosted trees were grown on {self.n_features} features; got {X.shape}."
            )
        n_scores = len(self.baseline)
        scores = np.zeros((len(X), n_scores)) + self.baseline
        # Tree by tree and in order: sums of floating-point numbers depend on it.
        for tree, root in enumerate(self.tree_offset[:-1]):
            scores[:, tree % n_scores] += self.value[self._leaves(X, int(root))]
        if n_scores == 1:
            second = expit(scores[:, 0])
            return np.column_stack([1 - second, second])
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def _leaves(self, X: Matrix, root: int) -> NDArray[np.int64]:
        node = np.full(len(X), root)
        walking = np.flatnonzero(self.left[node] >= 0)
        while walking.size:
            at = node[walking]
            value = X[walking, self.feature[at]]
            left = np.where(
                np.isnan(value), self.missing_left[at] != 0, value <= self.threshold[at]
            )
            node[walking] = np.where(left, self.left[at], self.right[at])
            walking = walking[self.left[node[walking]] >= 0]
        return node

    def _check_restored(self) -> None:
        n = len(self.left)
        same = all(len(part) == n for part in (self.threshold, self.missing_left, self.value))
        expect(same, self, "has nodes that lack a part")
        expect(1 < len(self.tree_offset) <= _MOST_TREES, self, "has no trees, or too many")
        nodes = (self.feature, self.left, self.right, self.tree_offset)
        check_trees("BoostedTrees", *nodes, self.n_features)
        K = len(self.classes_)
        expect(K >= 2 and rising(self.classes_, strictly=True), self, "has wrong classes")
        expect(len(self.baseline) == (1 if K == 2 else K), self, "has a wrong baseline")
        expect((len(self.tree_offset) - 1) % len(self.baseline) == 0, self, "lacks trees")
