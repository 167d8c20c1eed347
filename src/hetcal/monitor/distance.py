"""Scores that see what support cannot: items far outside the data.

A forest puts an item far outside the data into an ordinary edge leaf, so its support may be high.
These scores look at the features alone; low is atypical here too.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import NDArray

from hetcal._stored import expect, stored
from hetcal._stored.fields import LARGEST, instance, number, numbers
from hetcal._typing import Rows, Vector
from hetcal.kernels import forest as kernel
from hetcal.monitor.bins import N_BINS, log_bins, unit_bins

_N_TREES, _PER_TREE = 100, 256
_MOST_LANDMARKS = 1000
_MOST_DEVIATIONS = 10.0  # more of one column would outweigh all others
_BLOCK_NUMBERS = 1 << 23


@stored(
    {
        "forest": instance(kernel.Forest),
        "path": numbers(None, low=0.0),
        "typical": number(1e-9, LARGEST),
    }
)
class IsolationScore:
    """How soon random cuts isolate an item; as in an isolation forest.

    The score is 1 - 2^(-h / c) with h the mean length of the item's path and c that in a tree of
    random cuts; atypical items have short paths. Reference items are scored by the trees that have
    not drawn them, new ones by as many.
    """

    holds_items = False

    def fit(self, F: Vector, seed: int) -> Self:
        """Grow the trees on encoded features."""
        size = max(2, min(_PER_TREE, len(F) // 2))
        isolation = sklearn.ensemble.IsolationForest(
            n_estimators=_N_TREES, max_samples=size, random_state=seed
        ).fit(F)
        self.forest = kernel.from_sklearn(isolation)
        self.path = np.concatenate([_path_lengths(tree.tree_) for tree in isolation.estimators_])
        self.typical = float(_expected_path(np.array([size]))[0])
        return self

    def fit_all(self, F: Vector) -> Self:
        """Grow the trees on these items."""
        return self.fit(F, 0)

    def out_of_sample(self, F: Vector) -> tuple[Vector, Rows | None]:
        """Return the scores of the items it was fitted on, and over how many trees each."""
        leaves = kernel.out_of_bag_leaves(self.forest, kernel.apply(self.forest, F))
        return self._score(leaves), (leaves >= 0).sum(axis=1)

    def score(self, F: Vector, n_trees: Rows | None, rng: np.random.Generator) -> Vector:
        """Return the scores of new items, by so many trees each."""
        leaves = kernel.apply(self.forest, F)
        if n_trees is not None:
            leaves = kernel.leaves_of_some_trees(leaves, n_trees, rng)
        return self._score(leaves)

    def bins(self, scores: Vector) -> Rows:
        """Return fixed bins."""
        return unit_bins(scores)

    @property
    def n_columns(self) -> int:
        """Number of encoded features."""
        return self.forest.n_features

    def _check_restored(self) -> None:
        expect(len(self.path) == self.forest.n_leaves, self, "has odd paths")

    def _score(self, leaves: NDArray[np.int32]) -> Vector:
        seen = leaves >= 0
        mean = np.where(seen, self.path[leaves], 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
        return 1 - 2.0 ** (-mean / self.typical)


@stored(
    {
        "center": numbers(None),
        "spread": numbers(None, low=1 / LARGEST),
        "landmarks": numbers(None, None),
    },
    derived={"chosen": None},
)
class NearestScore:
    """Distance to the nearest of at most 1000 remembered items, standardised by column.

    Beyond ten standard deviations from the mean a value counts as ten.
    Sees every shift that leaves the data, in any number of columns; keeps features of items. The
    remembered items, a quarter of all, set the scale and so are no reference for themselves: in a
    column that is almost constant, the few items that differ make the scale that they are measured
    by.
    """

    holds_items = True

    def fit(self, F: Vector, seed: int) -> Self:
        """Remember some items."""
        n = max(1, min(len(F) // 4, _MOST_LANDMARKS))
        self.chosen = np.random.default_rng(seed).permutation(len(F))[:n]
        return self.fit_all(F[self.chosen])

    def fit_all(self, F: Vector) -> Self:
        """Remember these items."""
        self.center, spread = F.mean(axis=0), F.std(axis=0)
        # In a column that never varied any change counts in full, rounding does not.
        least = 1e-6 * np.maximum(np.abs(self.center), 1e-6)
        self.spread = np.maximum(spread, least)
        self.landmarks = self._standardised(F)
        return self

    def out_of_sample(self, F: Vector) -> tuple[Vector, Rows | None]:
        """Return the scores of the items it was fitted on; NaN for those that it remembers."""
        scores = self._score(F)
        scores[self.chosen] = np.nan
        return scores, None

    def score(self, F: Vector, n_trees: Rows | None, rng: np.random.Generator) -> Vector:
        """Return the scores of new items."""
        return self._score(F)

    def bins(self, scores: Vector) -> Rows:
        """Return fixed bins."""
        return N_BINS - 1 - log_bins(-scores)

    @property
    def n_columns(self) -> int:
        """Number of encoded features."""
        return self.landmarks.shape[1]

    def _check_restored(self) -> None:
        n, d = self.landmarks.shape
        expect(0 < n <= _MOST_LANDMARKS, self, "remembers no items")
        expect(len(self.center) == len(self.spread) == d, self, "has no scale")

    def _standardised(self, F: Vector) -> Vector:
        return np.clip((F - self.center) / self.spread, -_MOST_DEVIATIONS, _MOST_DEVIATIONS)

    def _score(self, F: Vector) -> Vector:
        Z = self._standardised(F)
        step = max(1, _BLOCK_NUMBERS // len(self.landmarks))
        norms = (self.landmarks**2).sum(axis=1)
        nearest = np.empty(len(Z))
        for start in range(0, len(Z), step):
            part = Z[start : start + step]
            squares = (part**2).sum(axis=1)[:, None] + norms - 2 * part @ self.landmarks.T
            nearest[start : start + step] = squares.min(axis=1)
        return -np.sqrt(np.maximum(nearest, 0.0))


SCORES: dict[str, Any] = {"isolation": IsolationScore, "nearest": NearestScore}


def _expected_path(n: NDArray[Any]) -> Vector:
    """Return the mean path length among n items that random cuts part."""
    n = np.asarray(n, dtype=np.float64)
    many = np.maximum(n, 3)
    path = 2 * (np.log(many - 1) + np.euler_gamma) - 2 * (many - 1) / many
    return np.where(n <= 1, 0.0, np.where(n == 2, 1.0, path))


def _path_lengths(tree: Any) -> Vector:
    """Return the path length of each leaf: its depth, and what its items would take to part."""
    depth = np.zeros(tree.node_count)
    for node in range(tree.node_count):  # parents come first
        for child in (tree.children_left[node], tree.children_right[node]):
            if child >= 0:
                depth[child] = depth[node] + 1
    leaf = tree.children_left < 0
    return depth[leaf] + _expected_path(tree.n_node_samples[leaf])
