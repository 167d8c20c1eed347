"""Boosted trees with children wherever they are: what a file keeps of gradient boosting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from hetcal._stored import expect, stored
from hetcal._stored.fields import MOST_CLASSES, integers, numbers, rising
from hetcal.kernels._backend import native
from hetcal.kernels._checks import aligned, check_trees
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
    """Scores that are sums over trees: one score with two classes, else one per class.

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

    def predict_proba(self, X: Matrix) -> Matrix:
        """Return the probabilities of ``classes_``."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"The boosted trees were grown on {self.n_features} features; got {X.shape}."
            )
        n_scores = len(self.baseline)
        scores = np.zeros((len(X), n_scores)) + self.baseline
        if native() is None:
            self._add_leaves(X, scores)
        else:
            self.packed.add(*aligned(np.ascontiguousarray(X)), scores)
        if n_scores == 1:
            second = expit(scores[:, 0])
            return np.column_stack([1 - second, second])
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    @cached_property
    def packed(self) -> Any:
        """The trees of the compiled core: checked and copied once, when first needed."""
        nodes = (self.feature, self.threshold, self.left, self.right, self.missing_left, self.value)
        core: Any = native()
        return core.PackedBoosting(*aligned(*nodes, self.tree_offset), self.n_features)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be made again."""
        return {name: value for name, value in self.__dict__.items() if name != "packed"}

    def _add_leaves(self, X: Matrix, scores: Matrix) -> None:
        # Tree by tree and in order: sums of floating-point numbers depend on it.
        for tree, root in enumerate(self.tree_offset[:-1]):
            scores[:, tree % scores.shape[1]] += self.value[self._leaves(X, int(root))]

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
