"""Learners of residuals: directions of an item that were found on other folds.

A learner is a function from a :class:`Task` to predictions of the residuals, each made by what was
learned from the other folds. ``LEARNERS`` lists hetcal's own by name; any scikit-learn regressor
can join (:func:`regressor_learner`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from sklearn.base import clone

from hetcal._typing import Matrix, Rows, Vector
from hetcal.data import Folds, out_of_sample
from hetcal.heterogeneity.dictionary import Dictionary
from hetcal.heterogeneity.functions_of_p import FunctionsOfP
from hetcal.kernels.binned_features import bin_features
from hetcal.kernels.boosting import boosted_residuals
from hetcal.kernels.forest_binned import BinnedForest
from hetcal.kernels.forest_vote import apply, indicator

Floats = NDArray[np.float32]

_RIDGES = np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])  # per item
_MOST_LEVELS = 30
_MOST_LINEAR = 400
_MOST_BOOSTED = 4  # classes that trees are grown for: those with most to explain
_RATE, _ROUNDS, _ROUNDS_OF_FEW, _FEW_ITEMS = 0.16, 70, 35, 2000
_STEPS, _LEAST_Z = 6, 3.0
_TREES, _LEAST_LEAF = 60, 5


@dataclass(frozen=True, eq=False)
class Task:
    """Residuals, and what learners may look at.

    Attributes
    ----------
    residuals : ndarray of shape (n, C)
        Of all items, off the functions of p. They sum to zero, so that a learner could tell the
        residuals of a fold from those of the others: it learns from :meth:`residuals_of`.
    folds : Folds
    weight : ndarray of shape (n,)
    dictionary : Dictionary
    odds : ndarray of shape (n, L)
        Log-odds of p.
    law : ndarray of shape (n, C)
        h(p) of the classes that have residuals.
    space : FunctionsOfP
    candidates : list of ndarray
        For each fold, numbers of the directions that stand out on the other folds.
    """

    residuals: Matrix
    folds: Folds
    weight: Vector
    dictionary: Dictionary
    odds: Matrix
    law: Matrix
    space: FunctionsOfP
    candidates: list[Rows]

    def without(self, train: Rows) -> int:
        """Return the fold that is not among the items to learn from."""
        return int(np.bincount(self.folds.number[train], minlength=len(self.folds)).argmin())

    def residuals_of(self, train: Rows) -> Matrix:
        """Return the residuals that all items but a fold's have among themselves."""
        return self.residuals_by_fold[self.without(train)][train]

    @cached_property
    def residuals_by_fold(self) -> Matrix:
        """The residuals to learn from for each fold, zero for its own items; (J, n, C)."""
        every = np.zeros((len(self.folds), *self.residuals.shape))
        for residuals, (train, _) in zip(every, self.folds, strict=True):
            residuals[train] = self.space.take(train).residual(self.residuals[train])
        return every

    def tree_features(self) -> Floats:
        """Return ranks (NaN where missing), frequent levels, and log-odds."""
        columns = self.dictionary.columns
        ranks = columns.ranks.copy()
        for name, missing in zip(columns.missing_names, columns.missing.T, strict=True):
            if name in columns.names:
                ranks[missing, columns.names.index(name)] = np.nan
        parts = [ranks, self.odds.astype(np.float32)]
        for category in columns.categories:
            parts.append(_levels(category.codes, len(category.levels)))
            counts = np.append(category.counts, 0)[category.codes]
            parts.append(counts[:, None].astype(np.float32))
        return np.hstack(parts)

    def linear_features(self) -> Matrix:
        """Return scores, missing ones, levels and slopes in p, less functions of p."""
        columns, scores = self.dictionary.columns, self.dictionary.scores
        parts = [scores, columns.missing]
        parts += [_levels(category.codes, len(category.levels)) for category in columns.categories]
        if scores.shape[1] <= _MOST_LINEAR // 2:
            slope = (self.odds[:, 0] - self.odds[:, 0].mean()) / (self.odds[:, 0].std() + 1e-9)
            parts.append(scores * np.clip(slope, -3, 3)[:, None])
        return self.space.residual(np.hstack(parts)[:, :_MOST_LINEAR].astype(np.float64))


Learner = Callable[[Task], Matrix]


def _levels(codes: Rows, n_levels: int) -> Floats:
    return (codes[:, None] == np.arange(min(n_levels, _MOST_LEVELS))).astype(np.float32)


def linear_directions(task: Task) -> Matrix:
    """Predict by ridge regression, its penalty chosen by generalised cross-validation."""
    A, R = task.linear_features(), task.residuals
    if not A.shape[1]:
        return np.zeros_like(R)
    A = A / (np.sqrt((A**2).mean(axis=0)) + 1e-9)

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        coefficients = _ridge(A[train], task.residuals_of(train), task.weight[train])
        return lambda test: A[test] @ coefficients

    return out_of_sample(learn, task.folds, len(R))


def _ridge(A: Matrix, R: Matrix, weight: Vector) -> Matrix:
    if A.shape[1] > len(A):  # the coefficients are a combination of the rows
        basis = np.linalg.qr(A.T)[0]
        return basis @ _ridge(A @ basis, R, weight)
    weighted = A * weight[:, None]
    values, vectors = np.linalg.eigh(A.T @ weighted)
    target = vectors.T @ (weighted.T @ R)
    square, n = (weight @ R**2).sum(), len(A)
    best, found = np.inf, np.zeros((A.shape[1], R.shape[1]))
    for ridge in n * _RIDGES:
        shrunk = target / (values + ridge)[:, None]
        left = square - (2 * target * shrunk - values[:, None] * shrunk**2).sum()
        score = left / max(1 - (values / (values + ridge)).sum() / n, 0.05) ** 2
        if score < best:
            best, found = score, shrunk
    return vectors @ found


def greedy_directions(task: Task) -> Matrix:
    """Predict by the directions of the dictionary with the largest scores, one after the other."""
    R = task.residuals

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        F = free_values(task.space, task.dictionary, task.candidates[task.without(train)])
        chosen, coefficients = pursue(F[train], task.residuals_of(train), task.weight[train])
        return lambda test: F[test][:, chosen] @ coefficients

    return out_of_sample(learn, task.folds, len(R))


def free_values(space: FunctionsOfP, dictionary: Dictionary, which: Rows) -> Matrix:
    """Return some directions of all items, less functions of p."""
    return space.residual(dictionary.values(slice(None), which).astype(np.float64))


def pursue(F: Matrix, R: Matrix, weight: Vector, steps: int = _STEPS) -> tuple[list[int], Matrix]:
    """Return columns of F that explain R, the largest score first, and their coefficients."""
    chosen: list[int] = []
    coefficients: Matrix = np.zeros((0, R.shape[1]))
    left = R
    root = np.sqrt(weight)[:, None]
    spread = np.sqrt(weight @ F**2) + 1e-3 * np.sqrt(len(F))
    for _ in range(min(steps, F.shape[1])):
        variance = weight @ left**2 / len(left) + 1e-12
        z = np.sqrt(((F.T @ (weight[:, None] * left)) ** 2 / variance).sum(axis=1)) / spread
        best = int(z.argmax())
        if best in chosen or (chosen and z[best] < _LEAST_Z):
            break
        chosen.append(best)
        coefficients = np.asarray(
            np.linalg.lstsq(F[:, chosen] * root, R * root, rcond=None)[0], dtype=np.float64
        )
        left = R - F[:, chosen] @ coefficients
    return chosen, coefficients


def boosted_directions(task: Task) -> Matrix:
    """Predict by boosted trees of up to three splits, for the classes with most to explain."""
    R = task.residuals
    most = np.argsort(-(R**2).sum(axis=0), kind="stable")[:_MOST_BOOSTED]
    found = np.zeros_like(R)
    found[:, most] = boosted_residuals(
        task.tree_features(),
        task.residuals_by_fold[:, :, most],
        task.folds.number,
        weight=task.weight,
        n_rounds=_ROUNDS_OF_FEW if len(R) <= _FEW_ITEMS else _ROUNDS,
        learning_rate=_RATE,
    )
    return found


def forest_directions(task: Task) -> Matrix:
    """Predict by a forest of deep trees, grown for all classes together."""
    Z, R = task.tree_features(), task.residuals
    grower = BinnedForest(_TREES, max_features=1 / 3, min_samples_leaf=_LEAST_LEAF)

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        residuals = task.residuals_of(train)
        forest = grower.fit_values(bin_features(Z[train]), residuals, weight=task.weight[train])
        inside = indicator(apply(forest, Z[train]), forest.n_leaves)
        mass = inside.T @ task.weight[train]
        means = (inside.T @ (task.weight[train, None] * residuals)) / np.maximum(mass, 1e-12)[
            :, None
        ]
        return lambda test: indicator(apply(forest, Z[test]), forest.n_leaves) @ means / _TREES

    return out_of_sample(learn, task.folds, len(R))


def regressor_learner(regressor: Any) -> Learner:
    """Return the learner that fits copies of a scikit-learn regressor."""
    return partial(_regressor_directions, regressor)


def _regressor_directions(regressor: Any, task: Task) -> Matrix:
    Z, R = np.nan_to_num(task.tree_features(), nan=0.5), task.residuals

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        residuals = task.residuals_of(train)
        models = [clone(regressor).fit(Z[train], column) for column in residuals.T]
        return lambda test: np.column_stack([model.predict(Z[test]) for model in models])

    return out_of_sample(learn, task.folds, len(R))


#: Learners by name. A learner of another engine joins by one line.
LEARNERS: Mapping[str, Learner] = {
    "linear": linear_directions,
    "greedy": greedy_directions,
    "boosting": boosted_directions,
    "forest": forest_directions,
}
#: Those of `learners="auto"`: a forest finds little that boosting does not.
USUAL = ("linear", "greedy", "boosting")
#: The dictionary looks for what these find without holding anything out: no test of their own.
WITHOUT_TEST = ("linear", "greedy")
#: Fast enough for many splits.
FAST = ("boosting",)


def stacked(directions: list[Matrix], task: Task) -> Matrix:
    """Return the learners' directions together, each fold by the weights that suit the others."""
    R = task.residuals
    root = np.sqrt(task.weight)[:, None]
    columns = np.stack([(root * direction).ravel() for direction in directions], axis=1)
    target = (root * R).ravel()
    fold = np.repeat(task.folds.number, R.shape[1])
    together = np.zeros_like(R)
    for j in range(len(task.folds)):
        train, test = fold != j, task.folds.number == j
        gram, moment = columns[train].T @ columns[train], columns[train].T @ target[train]
        share = _nonnegative(gram, moment)
        together[test] = np.tensordot(share, np.stack(directions)[:, test], 1)
    return together


def _nonnegative(gram: Matrix, moment: Vector) -> Vector:
    """Solve non-negative least squares from its normal equations."""
    root = np.linalg.cholesky(gram + 1e-9 * (np.trace(gram) + 1e-12) * np.eye(len(gram)))
    return scipy.optimize.nnls(root.T, np.linalg.solve(root, moment))[0]
