"""Similarity by shared leaves: the share of a forest's trees in which two items meet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from hetcal._stored import expect, stored
from hetcal._stored.fields import instance, one_of
from hetcal._stored.leaves import leaf_bytes, leaves, pack_leaves, unpacked
from hetcal._typing import Rows
from hetcal.kernels import forest as kernel
from hetcal.kernels.votes import Ballot, Voters, VoteRule, Votes, heaviest_neighbours
from hetcal.similarity.base import BaseSimilarity, Matrix, Neighbours, without_self

_STORED = {"forest_": instance(kernel.Forest), "leaves_": leaves}
_CACHES = {"_index": None, "_unbiased_index": None, "_sums": None}
_SEEDS = 2**31 - 1


class LeafSimilarity(BaseSimilarity):
    """Common ground of forest similarities: everything is known from the leaves.

    The plain vote needs no pairs at all: it sums, over the trees, the class weights in the leaf
    that the new item reaches. Thresholds, powers and nearest items go through an inverted index
    from leaves to calibration items.
    """

    forest_: kernel.Forest
    leaves_: NDArray[np.int32]
    n_jobs: int | None

    def _keep(self, forest: kernel.Forest, Z: Any) -> Self:
        self.forest_ = forest
        self.leaves_ = kernel.apply(forest, Z, self.n_jobs)
        self._forget_sums()
        return self

    def _forget_sums(self) -> None:
        self._index: kernel.LeafItems | None = None
        self._unbiased_index: kernel.LeafItems | None = None
        self._sums: tuple[Voters, kernel.LeafMass] | None = None

    def _to_stored(self, state: dict[str, Any]) -> dict[str, Any]:
        return state | {"leaves_": pack_leaves(self.forest_, self.leaves_)}

    @classmethod
    def _from_stored(cls, state: dict[str, Any]) -> dict[str, Any]:
        return unpacked(cls, state, kernel.Forest)

    @staticmethod
    def _bytes_needed(state: dict[str, Any]) -> int:
        # Voters that are out of bag have leaves and an index of their own.
        kinds = 2 if state.get("voters") == "out-of-bag" else 1
        return kinds * leaf_bytes(state.get("leaves_", ()))

    @property
    def n_items_(self) -> int:
        """Number of calibration items."""
        return self.leaves_.shape[0]

    @property
    def n_columns_(self) -> int:
        """Number of columns that are compared."""
        return self.forest_.n_features

    def pairwise(self, Z: Any) -> Matrix:
        """Return the share of trees in which each row meets each calibration item."""
        return kernel.pairwise(self._leaf_items(), self._queries(Z), self.n_jobs)

    def out_of_sample_pairwise(self, rows: slice) -> Matrix:
        """Return the same among the calibration items, over trees new to the row's item."""
        index, queries = self._out_of_bag_pair(rows)
        return without_self(kernel.pairwise(index, queries, self.n_jobs), rows)

    def unbiased_pairwise(self, Z: Any) -> Matrix:
        """Return the similarities counted, for each calibration item, over trees new to it."""
        return kernel.pairwise(self._unbiased_items(), self._queries(Z), self.n_jobs)

    def neighbours(self, Z: Any, n_neighbors: int) -> Neighbours:
        """Return the calibration items that most often share a leaf with each row."""
        k = min(n_neighbors, self.n_items_)
        index, similarity = kernel.top_items(self._leaf_items(), self._queries(Z), k, self.n_jobs)
        return Neighbours(index.astype(np.int64), similarity)

    def extend(self, Z: Any) -> None:
        """Add calibration items; no tree has seen them."""
        added = kernel.apply(self.forest_, Z, self.n_jobs)
        self.leaves_ = np.vstack([self.leaves_, added])
        if self.forest_.in_bag is not None:
            unseen = np.zeros((self.forest_.n_trees, added.shape[0]), dtype=np.uint8)
            self.forest_ = replace(self.forest_, in_bag=np.hstack([self.forest_.in_bag, unseen]))
        self._forget_sums()

    def retain(self, rows: Rows) -> None:
        """Keep only these calibration items; the trees stay as they are."""
        self.leaves_ = self.leaves_[rows]
        if self.forest_.in_bag is not None:
            self.forest_ = replace(self.forest_, in_bag=self.forest_.in_bag[:, rows])
        self._forget_sums()

    def vote(self, Z: Any, voters: Voters, rule: VoteRule) -> Ballot:
        """Vote by leaf sums where everyone votes, else through the inverted index."""
        if rule.everyone:
            mass = self._leaf_mass(voters)
            return self._from_sums(kernel.vote(self.forest_, Z, mass, self.n_jobs))
        return self.counted_vote(Z, voters, rule)

    def vote_by_some_trees(
        self,
        Z: Any,
        voters: Voters,
        rule: VoteRule,
        n_trees: NDArray[Any],
        rng: np.random.Generator,
    ) -> Ballot:
        """Vote as :meth:`vote` does, but by so many trees per row, drawn at random."""
        if rule.everyone:
            sums = self._leaf_mass(voters)
            mass = kernel.vote_by_some_trees(self.forest_, Z, sums, n_trees, rng, self.n_jobs)
            return Ballot(mass, mass.sum(axis=1))
        leaves = kernel.apply(self.forest_, Z, self.n_jobs)
        queries = kernel.queries_from_leaves(kernel.leaves_of_some_trees(leaves, n_trees, rng))
        return self._by_index(self._leaf_items(), queries, voters, rule)

    def counted_vote(self, Z: Any, voters: Voters, rule: VoteRule) -> Ballot:
        """Vote through the inverted index, which also gives the sum of squared weights."""
        return self._by_index(self._leaf_items(), self._queries(Z), voters, rule)

    def out_of_sample_vote(self, voters: Voters, rule: VoteRule) -> Ballot:
        """Vote on the calibration items, each by the trees new to it and without itself."""
        if rule.everyone and self.forest_.in_bag is not None:
            mass = kernel.out_of_bag_sum(
                self.forest_, self.leaves_, voters.codes, voters.n_classes, weight=voters.weight
            )
            return Ballot(mass, mass.sum(axis=1))
        return self._by_index(*self._out_of_bag_pair(), voters, rule)

    def unbiased_vote(self, Z: Any, voters: Voters, rule: VoteRule) -> Ballot:
        """Vote with each voter weighted by the trees that have not seen its label."""
        return self._by_index(self._unbiased_items(), self._queries(Z), voters, rule)

    def heaviest(self, Z: Any, voters: Voters, rule: VoteRule, top: int) -> Votes:
        """List the heaviest votes; where the nearest are the heaviest, by the inverted index."""
        if voters.weight is not None or rule.power != 1.0:
            return super().heaviest(Z, voters, rule, top)
        near = self.neighbours(Z, top if rule.n_neighbors is None else min(top, rule.n_neighbors))
        total = self.vote(Z, voters, rule).mass.sum(axis=1)
        return heaviest_neighbours(near.index, near.similarity, voters, rule, top, total)

    def _by_index(
        self, index: kernel.LeafItems, queries: kernel.Queries, voters: Voters, rule: VoteRule
    ) -> Ballot:
        counted = kernel.neighbour_vote(
            index,
            queries,
            voters.codes,
            voters.n_classes,
            threshold=rule.threshold,
            power=0.0 if rule.uniform else rule.power,
            weight=voters.weight,
            n_neighbors=rule.n_neighbors,
            n_jobs=self.n_jobs,
        )
        return Ballot(counted.votes, counted.support, counted.squares)

    def _from_sums(self, sums: Matrix) -> Ballot:
        mass = sums / self.forest_.n_trees
        return Ballot(mass, mass.sum(axis=1))

    def _queries(self, Z: Any) -> kernel.Queries:
        return kernel.queries_from_leaves(kernel.apply(self.forest_, Z, self.n_jobs))

    def _out_of_bag_pair(
        self, rows: slice | None = None
    ) -> tuple[kernel.LeafItems, kernel.Queries]:
        own = np.arange(self.n_items_)[rows or slice(None)]
        leaves = self.leaves_[own]
        if self.forest_.in_bag is not None:
            part = replace(self.forest_, in_bag=self.forest_.in_bag[:, own])
            leaves = kernel.out_of_bag_leaves(part, leaves)
        return self._leaf_items(), kernel.queries_from_leaves(leaves, own)

    def _unbiased_items(self) -> kernel.LeafItems:
        if self.forest_.in_bag is None:
            return self._leaf_items()
        if self._unbiased_index is None:
            unseen = kernel.out_of_bag_leaves(self.forest_, self.leaves_)
            self._unbiased_index = kernel.build_index(
                self.forest_.n_leaves, unseen, voters="counted"
            )
        return self._unbiased_index

    def _leaf_items(self) -> kernel.LeafItems:
        if self._index is None:
            self._index = kernel.build_index(self.forest_.n_leaves, self.leaves_)
        return self._index

    def _leaf_mass(self, voters: Voters) -> kernel.LeafMass:
        kept = self._sums
        if kept is None or kept[0] is not voters:
            kept = self._sums = (voters, self._summed(voters))
        return kept[1]

    def _summed(self, voters: Voters) -> kernel.LeafMass:
        return kernel.leaf_class_mass(
            self.forest_.n_leaves, self.leaves_, voters.codes, voters.n_classes, voters.weight
        )


@stored(
    _STORED | {"voters": one_of("all", "out-of-bag"), "trees": one_of("random", "extra")},
    derived=_CACHES,
)
class ForestProximity(LeafSimilarity):
    r"""RFprox: the share of trees in which two items fall into the same leaf.

    .. math:: s(t, i) = \frac{1}{B} \sum_{b=1}^{B} 1(\text{leaf}_b(t) = \text{leaf}_b(i))

    The forest learns from the calibration labels which features matter. It is scikit-learn's, tree
    for tree; with missing values (and without weights) it is grown on features in 255 bins.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees B. Few make a coarse similarity, many cost time.
    trees : {"random", "extra"}, default="random"
        A random forest, or extra-trees (random thresholds, also bootstrapped): their leaves are
        less tied to the labels, and sharper with a power.
    max_features : str, int, float or None, default="sqrt"
        Features tried at each split.
    min_samples_leaf : int, default=1
        Larger leaves make more items similar.
    voters : {"all", "out-of-bag"}, default="all"
        Whether similarity is counted over all trees, or for each calibration item over the trees
        that have not seen it. Then no vote's weight depends on its own label.
    random_state : int, RandomState or None, default=0
        Seed of the forest.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0], [0.1], [0.9], [1.0]])
    >>> proximity = ForestProximity(n_estimators=10).fit(Z, np.array([0, 0, 1, 1]))
    >>> S = proximity.pairwise(np.array([[0.05]]))
    >>> bool(S[0, 0] > S[0, 3])
    True
    """

    accepts_missing = True

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        trees: str = "random",
        max_features: Any = "sqrt",
        min_samples_leaf: int = 1,
        voters: str = "all",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ):
        self.n_estimators = n_estimators
        self.trees = trees
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.voters = voters
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        Z: Any,
        codes: NDArray[np.int64],
        *,
        n_proba: int = 0,
        sample_weight: Matrix | None = None,
    ) -> Self:
        """Grow the forest on the calibration items."""
        splitters = {"random": "best", "extra": "random"}
        if self.trees not in splitters:
            raise ValueError(f"trees must be 'random' or 'extra'; got {self.trees!r}.")
        if self.voters not in ("all", "out-of-bag"):
            raise ValueError(f"voters must be 'all' or 'out-of-bag'; got {self.voters!r}.")
        for name in ("n_estimators", "min_samples_leaf"):
            value = getattr(self, name)
            if not (isinstance(value, int | np.integer) and value > 0):
                raise ValueError(f"{name} must be a positive integer; got {value!r}.")
        options: dict[str, Any] = {
            "n_estimators": self.n_estimators,
            "max_features": self.max_features,
            "splitter": splitters[self.trees],
            "min_samples_leaf": self.min_samples_leaf,
            "n_jobs": self.n_jobs,
        }
        n_classes = int(codes.max()) + 1
        if sample_weight is None and np.isnan(Z).any():
            # scikit-learn's own fit, tree for tree, would take ten times as long.
            seed = check_random_state(self.random_state).randint(_SEEDS)
            engine = kernel.BinnedForest(random_state=seed, **options)
            forest = engine.fit_classes(kernel.bin_features(Z), codes, n_classes)
        else:
            options |= {"sample_weight": sample_weight, "random_state": self.random_state}
            forest = kernel.fit_forest(Z, codes, n_classes, **options)
        return self._keep(forest, Z)

    def out_of_sample_vote(self, voters: Voters, rule: VoteRule) -> Ballot:
        """Vote on the calibration items; with out-of-bag voters neither side has seen the tree."""
        if self.voters == "all":
            return super().out_of_sample_vote(voters, rule)
        return BaseSimilarity.out_of_sample_vote(self, voters, rule)

    def out_of_sample_pairwise(self, rows: slice) -> Matrix:
        """Return similarities over trees new to the row's item and, if asked, to the voter."""
        S = super().out_of_sample_pairwise(rows)
        if self.voters == "out-of-bag":
            # The index counts over the voter's trees; those new to both are fewer.
            unseen = (np.asarray(self.forest_.in_bag) == 0).astype(np.float32)
            S *= unseen.sum(axis=0) / np.maximum(unseen[:, rows].T @ unseen, 1.0)
        return S

    def _check_restored(self) -> None:
        counted = self.voters == "all" or self.forest_.in_bag is not None
        expect(counted, self, "does not know who is out of bag")

    def _leaf_items(self) -> kernel.LeafItems:
        return self._unbiased_items() if self.voters == "out-of-bag" else super()._leaf_items()

    def _summed(self, voters: Voters) -> kernel.LeafMass:
        if self.voters == "all":
            return super()._summed(voters)
        return kernel.voter_mass(
            self.forest_, self.leaves_, voters.codes, voters.n_classes, voters.weight
        )


@stored(_STORED, derived=_CACHES)
class IsolationProximity(LeafSimilarity):
    """Shared leaves of an isolation forest: a similarity that never looks at labels.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_samples : int, float or "auto", default="auto"
        Items that each tree is grown on; few make large leaves.
    random_state : int, RandomState or None, default=0
        Seed of the forest.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_samples: Any = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ):
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        Z: Any,
        codes: NDArray[np.int64] | None = None,
        *,
        n_proba: int = 0,
        sample_weight: Matrix | None = None,
    ) -> Self:
        """Grow the isolation forest on the calibration items."""
        isolation = sklearn.ensemble.IsolationForest(
            n_estimators=self.n_estimators,
            max_samples=self.max_samples,
            random_state=self.random_state,
        ).fit(Z)
        # Labels play no part, so every tree may count for every item: leaving one out is enough.
        return self._keep(replace(kernel.from_sklearn(isolation), in_bag=None), Z)
