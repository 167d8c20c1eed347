"""A fitted forest as plain arrays, and its conversion from scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import stored
from hetcal._stored.fields import Field, array_of, optional, whole
from hetcal.kernels._backend import native
from hetcal.kernels._checks import aligned, check_indices, check_length, check_trees, expect

MOST_NODES = 2**31 - 1  # children are places in arrays of int32
# First what the checks take for a while; later numbers of leaves, the layout of the compiled core
# and leaf sums.
_BYTES_PER_NODE = 48


def _thresholds(value: Any) -> bool:
    """Take numbers, also infinite ones: these part missing values from all others."""
    return array_of(np.float64, None)(value) and not np.isnan(value).any()


#: What is stored of trees: the very types that kernels use.
STORED_TREES: dict[str, Field] = {
    "feature": array_of(np.int32, None),
    "threshold": _thresholds,
    "left": array_of(np.int32, None),
    "right": array_of(np.int32, None),
    "missing_left": array_of(np.uint8, None),
    "tree_offset": array_of(np.int64, None),
    "n_features": whole(1, 10_000_000),
}


@stored(
    STORED_TREES | {"in_bag": optional(array_of(np.uint8, None, None))},
    derived={"leaf_index": None},
)
@dataclass(frozen=True, eq=False)
class Forest:
    """The nodes of all trees, one tree after the other.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_nodes,)
        Feature that a node looks at; negative at leaves.
    threshold : ndarray of float64, shape (n_nodes,)
        A row goes left when its value, as float32, is at most this.
    left, right : ndarray of int32, shape (n_nodes,)
        Position of the children in these arrays; -1 at leaves.
    missing_left : ndarray of uint8, shape (n_nodes,)
        Whether missing values go left.
    leaf_index : ndarray of int32, shape (n_nodes,)
        Number of the leaf in the whole forest, -1 at inner nodes.
    tree_offset : ndarray of int64, shape (n_trees + 1,)
        Where each tree begins; its first node is the root.
    n_features : int
        Columns that a row must have.
    in_bag : ndarray of uint8, shape (n_trees, n_items), or None
        How often each tree drew each item (capped at 255); None without bootstrap.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    leaf_index: NDArray[np.int32]
    tree_offset: NDArray[np.int64]
    n_features: int
    in_bag: NDArray[np.uint8] | None = None

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_offset) - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees together."""
        return (len(self.left) + self.n_trees) // 2

    def first(self, n_trees: int) -> Forest:
        """Return the first trees, whose leaves keep their numbers."""
        end = int(self.tree_offset[min(n_trees, self.n_trees)])
        return Forest(
            feature=self.feature[:end],
            threshold=self.threshold[:end],
            left=self.left[:end],
            right=self.right[:end],
            missing_left=self.missing_left[:end],
            leaf_index=self.leaf_index[:end],
            tree_offset=self.tree_offset[: n_trees + 1],
            n_features=self.n_features,
        )

    @cached_property
    def packed(self) -> Any:
        """The forest of the compiled core: checked and copied once, when first needed."""
        core = native()
        if core is None:
            raise RuntimeError("Forest.packed belongs to the compiled core, which is switched off.")
        nodes = aligned(
            self.feature,
            self.threshold,
            self.left,
            self.right,
            self.missing_left,
            self.leaf_index,
            self.tree_offset,
        )
        return core.PackedForest(*nodes, self.n_features)

    @cached_property
    def checked(self) -> Forest:
        """The forest itself, checked once, for the pure twin."""
        self._check_restored()
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be made again."""
        made = ("packed", "checked")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    def _restore(self) -> None:
        object.__setattr__(self, "leaf_index", _leaf_numbers(self.left))

    def _check_restored(self) -> None:
        expect(self.n_features >= 1, "Forest", "n_features must be 1 or more", self.n_features)
        check_trees(
            "Forest", self.feature, self.left, self.right, self.tree_offset, self.n_features
        )
        for name in ("threshold", "missing_left", "leaf_index"):
            check_length("Forest", name, getattr(self, name), len(self.left))
        check_indices("Forest", "leaf_index", self.leaf_index[self.left < 0], self.n_leaves)
        expect(self.n_trees >= 1, "Forest", "there must be 1 tree or more", self.n_trees)
        if self.in_bag is not None:
            n_rows = len(self.in_bag)
            expect(n_rows == self.n_trees, "Forest", "in_bag must have a row per tree", n_rows)

    @staticmethod
    def _bytes_needed(state: dict[str, Any]) -> int:
        return _BYTES_PER_NODE * np.size(state["left"])


def assemble(
    feature: NDArray[Any],
    threshold: NDArray[Any],
    left: NDArray[Any],
    right: NDArray[Any],
    missing_left: NDArray[Any],
    tree_offset: NDArray[Any],
    n_features: int,
    in_bag: NDArray[np.uint8] | None,
) -> Forest:
    """Return a Forest from node arrays (children counted over all trees); number its leaves."""
    expect(len(left) <= MOST_NODES, "Forest", f"at most {MOST_NODES} nodes", len(left))
    return Forest(
        feature=np.ascontiguousarray(feature, dtype=np.int32),
        threshold=np.ascontiguousarray(threshold, dtype=np.float64),
        left=np.ascontiguousarray(left, dtype=np.int32),
        right=np.ascontiguousarray(right, dtype=np.int32),
        missing_left=np.ascontiguousarray(missing_left, dtype=np.uint8),
        leaf_index=_leaf_numbers(left),
        tree_offset=np.ascontiguousarray(tree_offset, dtype=np.int64),
        n_features=int(n_features),
        in_bag=in_bag,
    )


def _leaf_numbers(left: NDArray[Any]) -> NDArray[np.int32]:
    """Return the number of each leaf among all leaves, -1 at inner nodes."""
    is_leaf = left < 0
    return np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32)


def from_sklearn(forest: Any) -> Forest:
    """Return the trees of a fitted scikit-learn forest as a Forest.

    Random forests, extra-trees and isolation forests.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.ensemble import IsolationForest
    >>> X, _ = make_moons(100, random_state=0)
    >>> from_sklearn(IsolationForest(n_estimators=5, random_state=0).fit(X)).n_trees
    5
    """
    trees = [tree.tree_ for tree in forest.estimators_]
    counts = np.array([tree.node_count for tree in trees], dtype=np.int64)
    offset = np.concatenate(([0], np.cumsum(counts)))

    def children(name: str) -> NDArray[np.int64]:
        shifted = []
        for tree, start in zip(trees, offset, strict=False):
            child = getattr(tree, name)
            shifted.append(np.where(child < 0, -1, child + start))
        return np.concatenate(shifted)

    return assemble(
        feature=np.concatenate(_features(forest, trees)),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        left=children("children_left"),
        right=children("children_right"),
        missing_left=np.concatenate([tree.missing_go_to_left for tree in trees]),
        tree_offset=offset,
        n_features=forest.n_features_in_,
        in_bag=_in_bag(forest),
    )


def _features(forest: Any, trees: list[Any]) -> list[NDArray[Any]]:
    """Return each tree's split features as columns of the data (isolation trees may see a part)."""
    seen = getattr(forest, "estimators_features_", None)
    if seen is None:
        return [tree.feature for tree in trees]
    return [
        np.where(tree.feature < 0, tree.feature, np.asarray(columns)[np.maximum(tree.feature, 0)])
        for tree, columns in zip(trees, seen, strict=True)
    ]


def _in_bag(forest: Any) -> NDArray[np.uint8] | None:
    """Return how often each tree drew each item, or None where every tree saw every item."""
    drawn = getattr(forest, "estimators_samples_", None)
    subsampled = getattr(forest, "max_samples_", None) is not None  # isolation forests
    if drawn is None or not (getattr(forest, "bootstrap", False) or subsampled):
        return None
    n_items = getattr(forest, "_n_samples", None)
    if n_items is None:
        n_items = 1 + max(int(np.max(items)) for items in drawn)
    return np.stack(
        [np.minimum(np.bincount(items, minlength=n_items), 255).astype(np.uint8) for items in drawn]
    )
