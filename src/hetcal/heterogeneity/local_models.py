"""Out-of-sample squared errors of the local models, out of bag or cross-fitted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hetcal._progress import progressed
from hetcal._typing import Matrix, Rows
from hetcal.data import Folds, out_of_sample
from hetcal.heterogeneity.cells import Balls
from hetcal.kernels.forest_fit import fit_forest
from hetcal.kernels.forest_vote import apply, leaf_class_mass, vote
from hetcal.kernels.local_forests import local_forest_scores
from hetcal.kernels.parallel import n_workers, pieces, spread

_LARGEST_BLOCK = 20_000_000  # probabilities held at once (160 MB), whatever the number of draws
_LEAF = 3  # of the cross-fitted forests, which are not pruned


@dataclass(frozen=True)
class LocalModels:
    """How local models are grown, and on what.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Features.
    P : ndarray of shape (n, K)
        Probabilities of the classifier (their number of columns is that of the classes).
    n_estimators : int
        Trees per neighbourhood.
    local_model : classifier or None
        Fitted instead of forests.
    fold : ndarray of int, shape (n,), or None
        Folds for cross-fitting; None for out-of-bag predictions of forests.
    """

    X: NDArray[np.float32]
    P: Matrix
    n_estimators: int
    local_model: Any = None
    fold: NDArray[np.int64] | None = None
    random_state: int = 0
    n_jobs: int | None = None

    def brier(self, balls: Balls, draws: NDArray[np.int64]) -> Iterator[Matrix]:
        """Yield the out-of-sample squared error of every member, blocks (n_draws, n_members).

        Blocks follow each other along the draws. NaN where a member has no out-of-sample
        prediction.

        Parameters
        ----------
        balls : Balls
        draws : ndarray of int, shape (n_draws, n)
            Label vectors.
        """
        size = max(1, len(balls.indices) * self.P.shape[1])
        step = max(1, _LARGEST_BLOCK // size)
        for first in range(0, len(draws), step):
            block = draws[first : first + step]
            if self.fold is None:
                proba = self._out_of_bag(balls, block)
            else:
                proba = np.stack([self._cross_fitted(balls, codes, self.fold) for codes in block])
            yield _squared_error(proba, block[:, balls.indices])

    def _out_of_bag(self, balls: Balls, draws: NDArray[np.int64]) -> Matrix:
        scores = local_forest_scores(
            self.X,
            draws,
            self.P.shape[1],
            self.P,
            balls.indptr,
            balls.indices,
            n_estimators=self.n_estimators,
            select="brier",
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            mode="fast",
            progress=neighbourhoods_done,
        )
        return np.asarray(scores.oob_proba)

    def _cross_fitted(self, balls: Balls, codes: Rows, fold: Rows) -> Matrix:
        proba = np.full((len(balls.indices), self.P.shape[1]), np.nan)
        workers = n_workers(self.n_jobs)
        if workers > 1:
            cuts = pieces(balls.sizes, workers)
            bare = replace(self, X=self.X[:0], P=self.P[:0], n_jobs=1)
            tasks = ((bare, self.X, self.P, _members(balls, cut), codes, fold) for cut in cuts)
            found = chain.from_iterable(spread(_cross_fit_some, tasks, self.n_jobs))
        else:
            found = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
                delayed(self._cross_fit_one)(members, codes, fold)
                for members in _members(balls, slice(0, len(balls)))
            )
        for j, part in enumerate(found):
            proba[balls.indptr[j] : balls.indptr[j + 1]] = part
            neighbourhoods_done(j + 1, len(balls))
        return proba

    def _cross_fit_one(self, members: Rows, codes: Rows, folds: Rows) -> Matrix:
        folds_of_members = Folds(folds).take(members)
        if len(folds_of_members) < 2:
            return np.full((len(members), self.P.shape[1]), np.nan)

        def learn(train: Rows) -> Callable[[Rows], Matrix]:
            rows = members[train]
            return lambda test: self._fit_predict(rows, members[test], codes[rows])

        return out_of_sample(learn, folds_of_members, len(members))

    def _fit_predict(self, train: NDArray, test: NDArray, y: Rows) -> Matrix:
        K = self.P.shape[1]
        present = np.unique(y)
        proba = np.zeros((len(test), K))
        if len(present) == 1:
            proba[:, present[0]] = 1.0
        elif self.local_model is None:
            proba = self._forest_predict(train, test, y)
        else:
            model = clone(self.local_model)
            if "random_state" in model.get_params():
                model.set_params(random_state=self.random_state)
            with warnings.catch_warnings():
                # Small neighbourhoods are often separable; the score out of sample is what counts.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(self.X[train], y)
            proba[:, model.classes_] = model.predict_proba(self.X[test])
        return proba

    def _forest_predict(self, train: NDArray, test: NDArray, y: Rows) -> Matrix:
        K = self.P.shape[1]
        forest = fit_forest(
            self.X[train],
            y,
            K,
            n_estimators=self.n_estimators,
            max_features=None,
            min_samples_leaf=min(_LEAF, len(train)),
            random_state=self.random_state,
        )
        mass = leaf_class_mass(forest.n_leaves, apply(forest, self.X[train]), y, K)
        votes = vote(forest, self.X[test], mass)
        return votes / votes.sum(axis=1, keepdims=True)


def _members(balls: Balls, cut: slice) -> list[Rows]:
    edges = balls.indptr[cut.start : cut.stop + 1]
    return [balls.indices[start:end] for start, end in pairwise(edges)]


def _cross_fit_some(
    bare: LocalModels,
    X: NDArray[np.float32],
    P: Matrix,
    members: list[Rows],
    codes: Rows,
    fold: Rows,
) -> list[Matrix]:
    """Cross-fit in some neighbourhoods; a task of a worker, to which arrays are sent once."""
    models = replace(bare, X=X, P=P)
    return [models._cross_fit_one(part, codes, fold) for part in members]


def _squared_error(proba: Matrix, codes: Rows) -> Matrix:
    """Return the squared distance to the one-hot label, summed over classes (the last axis)."""
    own = np.take_along_axis(proba, codes[..., None], axis=-1)[..., 0]
    return np.einsum("...k,...k->...", proba, proba) - 2 * own + 1


def neighbourhoods_done(done: int, total: int) -> None:
    """Report progress."""
    progressed(done, total, "neighbourhoods")
