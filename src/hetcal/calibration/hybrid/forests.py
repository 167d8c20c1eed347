"""Experts that grow a forest: votes of similar items, and the forest's own vote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect, stored
from hetcal._stored.checks import check_codes, check_weight
from hetcal._stored.fields import (
    MOST_CLASSES,
    flag,
    instance,
    integers,
    is_number,
    numbers,
    probabilities,
    whole,
)
from hetcal._stored.leaves import leaf_bytes, leaves, pack_leaves, unpacked
from hetcal._typing import Matrix, Vector
from hetcal.calibration.hybrid.families import Family, shares
from hetcal.calibration.hybrid.space import LogSpace
from hetcal.calibration.out_of_sample_support import Reference, without_own
from hetcal.data import CalibrationSet, Folds, Scores
from hetcal.kernels import forest as kernel
from hetcal.kernels.forest_binned import BinnedForest

_STORED = {
    "with_model": flag,
    "space_": instance(LogSpace, "center_"),
    "forest_": instance(kernel.Forest),
}
# Power of the proximity in votes that count dozens of items rather than the very nearest, and how
# many trees are enough for them: an interval is to cost at most twenty predictions, also where
# these ask no forest.
_SMOOTH, _SOME_TREES = 2.0, 40


def _is_powers(value: Any) -> bool:
    good = isinstance(value, tuple | list) and 0 < len(value) <= 64
    return good and all(is_number(power, 0, 1000) for power in value)


class ForestFamily(Family):
    """A forest on [X, log p], or on X alone, and the leaves of the calibration items in it."""

    n_estimators: int
    with_model: bool
    seed: int
    n_jobs: int | None

    @property
    def uses_model(self) -> bool:  # type: ignore[override]
        """Whether the forest sees the classifier's probabilities."""
        return self.with_model

    def _grow(
        self, items: CalibrationSet, *, splitter: str = "best", min_samples_leaf: int = 1
    ) -> Vector:
        """Grow the forest; return what an item counts in a tree each time it was drawn."""
        self.space_ = LogSpace(with_model=self.with_model).fit(items)
        Z = self.space_.transform(items.features(), items.scores)
        engine = BinnedForest(
            self.n_estimators,
            splitter=splitter,
            min_samples_leaf=min_samples_leaf,
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )
        drawn: dict[str, Any] = {"weight": items.unequal_counts, "groups": items.groups}
        self.forest_ = engine.fit_classes(
            self.space_.binned(items), items.codes, items.n_classes, **drawn
        )
        self.leaves_ = kernel.apply(self.forest_, Z, self.n_jobs)
        return engine.weight_per_draw(items.n_items, **drawn)

    def _to_stored(self, state: dict[str, Any]) -> dict[str, Any]:
        # Which tree has seen which item is asked by the fit alone.
        return state | {"forest_": replace(self.forest_, in_bag=None)}

    def _check_restored(self) -> None:
        same = self.forest_.n_features == len(self.space_.center_)
        expect(same, self, "has a forest of other columns")

    def _suffix(self) -> str:
        return "" if self.with_model else "-x"


@stored(
    _STORED
    | {
        "powers": _is_powers,
        "leaves_": leaves,
        "codes_": integers(None, low=0, high=MOST_CLASSES),
        "weight_": numbers(None, low=0.0),
        "n_classes_": whole(2, MOST_CLASSES),
    },
    derived={"index_": None},
)
class ProximityFamily(ForestFamily):
    """Votes weighted by powers of the proximity in an extra-trees forest."""

    def __init__(
        self,
        powers: tuple[float, ...] = (2.0, 8.0),
        *,
        n_estimators: int = 300,
        with_model: bool = True,
        seed: int = 0,
        n_jobs: int | None = None,
    ):
        self.powers = powers
        self.n_estimators = n_estimators
        self.with_model = with_model
        self.seed = seed
        self.n_jobs = n_jobs

    @property
    def names(self) -> tuple[str, ...]:
        """One name per power."""
        return tuple(f"proximity^{power:g}{self._suffix()}" for power in self.powers)

    def fit(self, items: CalibrationSet) -> Self:
        """Grow the forest and index its leaves."""
        self._grow(items, splitter="random")
        self.index_ = kernel.build_index(self.forest_.n_leaves, self.leaves_)
        self.codes_, self.weight_ = items.codes, items.counts
        self.n_classes_ = items.n_classes
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Hold the vote for new items."""
        Z = self.space_.transform(features, scores)
        queries = kernel.queries_from_leaves(kernel.apply(self.forest_, Z, self.n_jobs))
        return self._votes(self.index_, queries)

    def out_of_sample(self, items: CalibrationSet, folds: Folds) -> list[Matrix]:
        """Hold the vote on each calibration item by the trees that have not seen it."""
        pair = kernel.out_of_bag_pair(self.forest_, self.leaves_, groups=items.groups)
        return self._votes(*pair)

    def support(
        self,
        features: Matrix,
        scores: Scores,
        n_trees: NDArray[np.int64] | None = None,
        rng: np.random.Generator | None = None,
    ) -> Matrix:
        """Return the sum of similarities of each new item, over some trees where that is wanted."""
        Z = self.space_.transform(features, scores)
        one_class = np.zeros(self.codes_.shape[0], dtype=np.int64)
        mass = kernel.leaf_class_mass(
            self.forest_.n_leaves, self.leaves_, one_class, 1, self.weight_
        )
        if n_trees is None or rng is None:
            return kernel.vote(self.forest_, Z, mass, self.n_jobs)[:, 0] / self.forest_.n_trees
        votes = kernel.vote_by_some_trees(self.forest_, Z, mass, n_trees, rng, self.n_jobs)
        return votes[:, 0]

    def smooth_vote(self, features: Matrix, scores: Scores) -> tuple[Matrix, Vector]:
        """Return the vote of dozens of similar items on each new item, and its effective size.

        The size is how many equal votes it is worth; where nobody votes it is 0, the vote NaN.
        """
        Z = self.space_.transform(features, scores)
        leaves = kernel.apply(self.forest_.first(_SOME_TREES), Z, self.n_jobs)
        (cast,) = kernel.neighbour_votes(
            self.index_,
            kernel.queries_from_leaves(leaves),
            self.codes_,
            self.n_classes_,
            (_SMOOTH,),
            weight=self.weight_,
            n_jobs=self.n_jobs,
        )
        total, squares = cast.votes.sum(axis=1), cast.squares
        size = np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0)
        return shares(cast.votes), size

    def out_of_sample_support(self, items: CalibrationSet) -> Reference:
        """Return the support of each calibration item as if it were new."""
        one_class = np.zeros(items.n_items, dtype=np.int64)
        options: dict[str, Any] = {"weight": self.weight_}
        if items.groups is None:
            votes = kernel.out_of_bag_sum(self.forest_, self.leaves_, one_class, 1, **options)
            support = votes[:, 0]
        else:
            options |= {"groups": items.groups, "n_jobs": self.n_jobs}
            support = kernel.out_of_bag_vote(
                self.forest_, self.leaves_, one_class, 1, **options
            ).support
        n_trees = (np.asarray(self.forest_.in_bag) == 0).sum(axis=0)
        return Reference(without_own(support, self.weight_, items.groups), n_trees)

    def nearest(
        self, features: Matrix, scores: Scores, top: int
    ) -> tuple[NDArray[np.int64], Matrix]:
        """Return the most similar calibration items of each new item, and how similar they are."""
        Z = self.space_.transform(features, scores)
        queries = kernel.queries_from_leaves(kernel.apply(self.forest_, Z, self.n_jobs))
        k = min(top, self.codes_.shape[0])
        index, similarity = kernel.top_items(self.index_, queries, k, self.n_jobs)
        return index.astype(np.int64), similarity

    def _votes(self, index: kernel.LeafItems, queries: kernel.Queries) -> list[Matrix]:
        cast = kernel.neighbour_votes(
            index,
            queries,
            self.codes_,
            self.n_classes_,
            self.powers,
            weight=self.weight_,
            n_jobs=self.n_jobs,
        )
        return [shares(with_power.votes) for with_power in cast]

    def _to_stored(self, state: dict[str, Any]) -> dict[str, Any]:
        packed = {"leaves_": pack_leaves(self.forest_, self.leaves_)}
        return super()._to_stored(state) | packed

    @classmethod
    def _from_stored(cls, state: dict[str, Any]) -> dict[str, Any]:
        return unpacked(cls, state, kernel.Forest)

    @staticmethod
    def _bytes_needed(state: dict[str, Any]) -> int:
        forest = state.get("forest_")
        trees = forest.n_trees if isinstance(forest, kernel.Forest) else 0
        by_class = 8 * (trees + 1) * int(state.get("n_classes_", 0))  # shared leaves by class
        return by_class + leaf_bytes(state.get("leaves_", ()))

    def _restore(self) -> None:
        self.index_ = kernel.build_index(self.forest_.n_leaves, self.leaves_)

    def _check_restored(self) -> None:
        super()._check_restored()
        n = len(self.leaves_)
        check_codes(self, self.codes_, n, self.n_classes_)
        check_weight(self, self.weight_, n)


@stored(_STORED | {"mass_": instance(kernel.LeafMass)}, derived={"leaves_": None})
class ForestVoteFamily(ForestFamily):
    """The forest's own vote: what retraining a random forest would give."""

    def __init__(
        self,
        min_samples_leaf: int = 1,
        *,
        n_estimators: int = 300,
        with_model: bool = True,
        seed: int = 0,
        n_jobs: int | None = None,
    ):
        self.min_samples_leaf = min_samples_leaf
        self.n_estimators = n_estimators
        self.with_model = with_model
        self.seed = seed
        self.n_jobs = n_jobs

    @property
    def names(self) -> tuple[str, ...]:
        """The size of the smallest leaf."""
        return (f"forest-leaf{self.min_samples_leaf}{self._suffix()}",)

    @property
    def classes_known(self) -> int:
        """Number of classes."""
        return self.mass_.n_classes

    def _check_restored(self) -> None:
        super()._check_restored()
        same = self.mass_.n_leaves == self.forest_.n_leaves
        expect(same, self, "has leaf sums of another forest")
        frequencies = probabilities(*self.mass_.values.shape)(self.mass_.values)
        expect(frequencies, self, "has leaves with no frequencies")

    def fit(self, items: CalibrationSet) -> Self:
        """Grow the forest and keep the class frequencies of the items each leaf was grown on."""
        weight = self._grow(items, min_samples_leaf=self.min_samples_leaf)
        self.mass_ = kernel.leaf_frequencies(
            self.forest_, self.leaves_, items.codes, items.n_classes, weight
        )
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Average the leaves' class frequencies."""
        Z = self.space_.transform(features, scores)
        return [kernel.vote(self.forest_, Z, self.mass_, self.n_jobs) / self.forest_.n_trees]

    def out_of_sample(self, items: CalibrationSet, folds: Folds) -> list[Matrix]:
        """Average over the trees that have not seen the item."""
        unseen = kernel.out_of_bag_leaves(self.forest_, self.leaves_)
        return [shares(kernel.vote_leaves(unseen, self.mass_))]
