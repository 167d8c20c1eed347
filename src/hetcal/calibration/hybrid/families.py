"""The experts, in families that share work.

Every family gives, for each of its experts, an *honest* prediction on the calibration items
(nothing in row i depends on the label of item i) and a prediction for new items. A row of NaN means
that the expert has nothing to say about the item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neighbors import NearestNeighbors

from hetcal._compat import threadpool_limits
from hetcal.calibration.base import GlobalCalibrator, Matrix, Scores
from hetcal.calibration.hybrid.problem import Problem, clipped_logs, rows_of
from hetcal.kernels import forest as kernel


class Family(BaseEstimator, ABC):
    """Experts that are fitted together.

    Attributes
    ----------
    uses_model : bool
        Whether these experts look at the classifier's probabilities at all.
    """

    uses_model: bool = True
    in_base: bool = False  # whether its experts belong to the mean that a blend must beat

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """One name per expert."""

    @abstractmethod
    def fit(self, problem: Problem) -> Self:
        """Learn from the calibration items."""

    @abstractmethod
    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Return one prediction (m, K) per expert for new items."""

    def honest(self, problem: Problem) -> list[Matrix]:
        """Return one honest prediction (n, K) per expert for the calibration items."""
        return self.cross_fitted(problem)

    def cross_fitted(self, problem: Problem) -> list[Matrix]:
        """Fit without each fold in turn and predict the items left out."""
        honest = [np.full((problem.n_items, problem.n_classes), np.nan) for _ in self.names]
        for fold in np.unique(problem.folds):
            out = problem.folds == fold
            fitted = clone(self).fit(problem.part(~out))
            said = fitted.predict(problem.features[out], rows_of(problem.scores, out))
            for total, part in zip(honest, said, strict=True):
                total[out] = part
        return honest


class GlobalFamily(Family):
    """One global map; honest predictions are cross-fitted."""

    def __init__(self, name: str, calibrator: GlobalCalibrator, *, in_base: bool = False):
        self.name = name
        self.calibrator = calibrator
        self.in_base = in_base

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the map."""
        return (self.name,)

    def fit(self, problem: Problem) -> Self:
        """Fit the map."""
        self.map_ = clone(self.calibrator)
        self.map_.input_kind_ = "y_proba"
        self.map_.classes_ = np.arange(problem.n_classes)
        self.map_._fit_map(problem.scores, problem.codes, problem.weight)
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Apply the map."""
        return [self.map_._apply_map(scores)]


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

    def _grow(self, problem: Problem, *, splitter: str = "best", min_samples_leaf: int = 1) -> None:
        self.space_ = LogSpace(with_model=self.with_model).fit(problem)
        Z = self.space_.transform(problem.features, problem.scores)
        self.forest_ = kernel.fit_forest(
            Z,
            problem.codes,
            problem.n_classes,
            n_estimators=self.n_estimators,
            splitter=splitter,
            min_samples_leaf=min_samples_leaf,
            sample_weight=problem.weighted,
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )
        self.leaves_ = kernel.apply(self.forest_, Z, self.n_jobs)

    def _suffix(self) -> str:
        return "" if self.with_model else "-x"


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

    def fit(self, problem: Problem) -> Self:
        """Grow the forest and index its leaves."""
        self._grow(problem, splitter="random")
        self.index_ = kernel.build_index(self.forest_.n_leaves, self.leaves_)
        self.codes_, self.weight_ = problem.codes, problem.weight
        self.n_classes_ = problem.n_classes
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Hold the vote for new items."""
        Z = self.space_.transform(features, scores)
        queries = kernel.queries_from_leaves(kernel.apply(self.forest_, Z, self.n_jobs))
        return self._votes(self.index_, queries)

    def honest(self, problem: Problem) -> list[Matrix]:
        """Hold the vote on each calibration item by the trees that have not seen it."""
        if problem.grouped:
            return self.cross_fitted(problem)
        return self._votes(*kernel.out_of_bag_pair(self.forest_, self.leaves_))

    def support(self, features: Matrix, scores: Scores) -> Matrix:
        """Return the sum of similarities of each new item."""
        Z = self.space_.transform(features, scores)
        one_class = np.zeros(self.codes_.shape[0], dtype=np.int64)
        mass = kernel.leaf_class_mass(
            self.forest_.n_leaves, self.leaves_, one_class, 1, self.weight_
        )
        return kernel.vote(self.forest_, Z, mass, self.n_jobs)[:, 0] / self.forest_.n_trees

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
        return [
            _shares(
                kernel.neighbour_vote(
                    index,
                    queries,
                    self.codes_,
                    self.n_classes_,
                    power=power,
                    weight=self.weight_,
                    n_jobs=self.n_jobs,
                ).votes
            )
            for power in self.powers
        ]


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

    def fit(self, problem: Problem) -> Self:
        """Grow the forest and keep the class frequencies of the items each leaf was grown on."""
        self._grow(problem, min_samples_leaf=self.min_samples_leaf)
        self.mass_ = kernel.leaf_frequencies(
            self.forest_, self.leaves_, problem.codes, problem.n_classes, problem.weight
        )
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Average the leaves' class frequencies."""
        Z = self.space_.transform(features, scores)
        return [kernel.vote(self.forest_, Z, self.mass_, self.n_jobs) / self.forest_.n_trees]

    def honest(self, problem: Problem) -> list[Matrix]:
        """Average over the trees that have not seen the item."""
        if problem.grouped:
            return self.cross_fitted(problem)
        unseen = kernel.out_of_bag_leaves(self.forest_, self.leaves_)
        return [_shares(kernel.vote_leaves(unseen, self.mass_))]


class NeighbourFamily(Family):
    """The nearest items in standardised [X, p] or [X, log p], weighted by distance."""

    def __init__(self, n_neighbors: int = 5, power: float = 3.0, *, logs: bool = True):
        self.n_neighbors = n_neighbors
        self.power = power
        self.logs = logs

    @property
    def names(self) -> tuple[str, ...]:
        """How many neighbours, and in which space."""
        return (f"{self.n_neighbors}-nearest-{'log' if self.logs else 'p'}",)

    def fit(self, problem: Problem) -> Self:
        """Keep the items."""
        self.space_ = LogSpace(logs=self.logs, metric=True).fit(problem)
        Z = self.space_.transform(problem.features, problem.scores)
        self.index_ = NearestNeighbors(algorithm="brute").fit(Z)
        self.onehot_ = problem.onehot * problem.weight[:, None]
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Vote among the nearest items of each new item."""
        Z = self.space_.transform(features, scores)
        k = min(self.n_neighbors, self.onehot_.shape[0])
        return [self._vote(*self.index_.kneighbors(Z, n_neighbors=k))]

    def honest(self, problem: Problem) -> list[Matrix]:
        """Vote among the nearest other items."""
        if problem.grouped:
            return self.cross_fitted(problem)
        k = min(self.n_neighbors, problem.n_items - 1)
        return [self._vote(*self.index_.kneighbors(n_neighbors=k))]

    def _vote(self, distance: Matrix, index: NDArray[np.int64]) -> Matrix:
        nearest = np.maximum(distance[:, :1], 1e-9)
        weight = (nearest / np.maximum(distance, 1e-9)) ** self.power
        return _shares(np.einsum("mk,mkc->mc", weight, self.onehot_[index]))


class BoostingFamily(Family):
    """Gradient boosting on [X, log p], cross-fitted: what retraining a boosted model would give."""

    def __init__(self, *, seed: int = 0):
        self.seed = seed

    @property
    def names(self) -> tuple[str, ...]:
        """One boosted model."""
        return ("boosting",)

    def fit(self, problem: Problem) -> Self:
        """Boost."""
        self.space_ = LogSpace().fit(problem)
        self.n_classes_ = problem.n_classes
        Z = self.space_.transform(problem.features, problem.scores)
        self.known_ = ~np.isnan(Z).all(axis=0)  # a column without any value cannot be binned
        model = HistGradientBoostingClassifier(
            learning_rate=0.06,
            max_iter=120,
            max_leaf_nodes=12,
            l2_regularization=1.0,
            min_samples_leaf=int(np.clip(problem.n_items // 40, 3, 20)),
            early_stopping=False,
            random_state=self.seed,
        )
        # Small sets gain nothing from threads, and on a busy machine waiting threads cost a lot.
        with threadpool_limits(1, user_api="openmp"):
            self.model_ = model.fit(
                Z[:, self.known_], problem.codes, sample_weight=problem.weighted
            )
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Return the boosted probabilities, zero for classes that no item had."""
        Z = self.space_.transform(features, scores)
        with threadpool_limits(1, user_api="openmp"):
            said = self.model_.predict_proba(Z[:, self.known_])
        Q = np.zeros((said.shape[0], self.n_classes_))
        Q[:, self.model_.classes_] = said
        return [Q]


class LogSpace:
    """[X, standardised log p] or [X, p]; with ``metric`` every column standardised and no NaN."""

    def __init__(self, *, logs: bool = True, with_model: bool = True, metric: bool = False):
        self.logs = logs
        self.with_model = with_model
        self.metric = metric

    def fit(self, problem: Problem) -> Self:
        """Learn the scales."""
        Z = self._joined(problem.features, problem.scores)
        d = problem.features.shape[1]
        first = 0 if self.metric else d
        self.center_ = np.zeros(Z.shape[1])
        self.spread_ = np.ones(Z.shape[1])
        known = np.maximum((~np.isnan(Z[:, first:])).sum(axis=0), 1)
        self.center_[first:] = np.nansum(Z[:, first:], axis=0) / known
        squares = np.nansum((Z[:, first:] - self.center_[first:]) ** 2, axis=0) / known
        self.spread_[first:] = np.where(squares > 0, np.sqrt(squares), 1.0)
        return self

    def transform(self, features: Matrix, scores: Scores) -> Matrix:
        """Return items in this space."""
        Z = (self._joined(features, scores) - self.center_) / self.spread_
        return np.nan_to_num(Z) if self.metric else Z

    def _joined(self, features: Matrix, scores: Scores) -> Matrix:
        if not self.with_model:
            return features
        return np.hstack([features, clipped_logs(scores) if self.logs else scores.proba])


def _shares(votes: Matrix) -> Matrix:
    total = votes.sum(axis=1, keepdims=True)
    return np.divide(votes, total, out=np.full_like(votes, np.nan), where=total > 0)
