"""Experts that fit a smooth function of the items: least squares with a Gaussian kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from hetcal._compat import threadpool_limits
from hetcal._stored import expect, stored
from hetcal._stored.fields import LARGEST, flag, instance, number, numbers, probabilities
from hetcal._typing import Matrix, Rows, Vector
from hetcal.calibration.hybrid.families import Family, GlobalFamily
from hetcal.calibration.hybrid.space import LogSpace
from hetcal.calibration.temperature import TemperatureScaling
from hetcal.data import CalibrationSet, Folds, Scores
from hetcal.metrics.scores import brier_losses
from hetcal.metrics.standard_errors import mean_and_error

# Items on which width and ridge are chosen.
_TUNING_ITEMS = 600
# Landmarks that span the fitted functions. Where half of them lose more than a share of the loss,
# more are taken: as many as are no more work than so many items that are all landmarks.
_LANDMARKS, _WORTH_MORE, _MOST_WORK = 1000, 0.01, 3000
_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_RIDGES = tuple(np.geomspace(0.01, 100.0, 9))
_JITTER = 1e-6
_SURE = 3.0  # standard errors
_LEAST_SLACK = 1e-6
_LEAST_PROBABILITY = 1e-4
_BLOCK_ROWS = 128  # with their kernel values they stay in the fast memory
# Groups are left out one by one while they are small: what all items share (width, ridge and where
# the functions start) then hardly depends on a group, and solving for it costs little.
_LARGEST_SHARE, _LARGEST_GROUP = 0.02, 500


@stored(
    {
        "with_model": flag,
        "space_": instance(LogSpace, "center_"),
        "width_": number(0, LARGEST),
        "landmarks_": numbers(None, None),
        "coef_": numbers(None, None),
        "map_": instance(GlobalFamily, "map_"),
        "frequencies_": probabilities(None),
    },
    may_lack=("map_", "frequencies_"),
    derived={"left_out_": None},
)
class KernelFamily(Family):
    r"""Gaussian kernel least squares with exact predictions of what is left out.

    With the classifier's probabilities it learns, on [X, log p], what temperature scaling leaves
    unexplained; without, on X, the labels themselves. Fitted values are cut at zero, squared
    (least squares shrinks probabilities towards each other) and normalised.

    The functions are spanned by 1000 of the items; by more where 1000 do better than 500: all of
    3000, 1643 of 10 000. Beyond 27 000 items there are never more, and the cost is linear. With
    features :math:`\Phi` and ridge :math:`\lambda`, the hat matrix
    :math:`H = \Phi (\Phi^\top \Phi + \lambda I)^{-1} \Phi^\top` gives the prediction that leaves
    item i out: its residual divided by :math:`1 - H_{ii}`; and a group g likewise, its residuals
    solved with :math:`I - H_{gg}`.
    """

    def __init__(self, *, with_model: bool = True, seed: int = 0):
        self.with_model = with_model
        self.seed = seed

    @property
    def uses_model(self) -> bool:  # type: ignore[override]
        """Whether the kernel sees the classifier's probabilities."""
        return self.with_model

    @property
    def names(self) -> tuple[str, ...]:
        """One kernel machine."""
        return ("kernel" if self.with_model else "kernel-x",)

    @property
    def classes_known(self) -> int:
        """Number of classes."""
        return self.coef_.shape[1]

    def _check_restored(self) -> None:
        width, K = len(self.space_.center_), self.classes_known
        expect(self.landmarks_.shape[1] == width, self, "has items of other columns")
        expect(len(self.coef_) == len(self.landmarks_), self, "has wrong coefficients")
        if self.with_model:
            start = hasattr(self, "map_") and self.map_.classes_known == K
        else:
            start = hasattr(self, "frequencies_") and len(self.frequencies_) == K
        expect(start, self, "does not know where to start")

    def fit(self, items: CalibrationSet) -> Self:
        """Choose width and ridge on some of the items, then fit all."""
        self.space_ = LogSpace(with_model=self.with_model, metric=True).fit(items)
        Z = self.space_.transform(items.features(), items.scores)
        start = self._fit_start(items)
        order = np.random.default_rng(self.seed).permutation(items.n_items)
        few = order[:_TUNING_ITEMS]
        # So small a matrix gains nothing from threads, and on a busy machine they cost minutes.
        with threadpool_limits(1, user_api="blas"):
            self.width_, ridge = _tuned(Z[few], start[few], items.take(few))
        fitted = partial(_Fit.to, Z, start, items, order, self.width_)
        found = fitted(min(items.n_items, _LANDMARKS), ridge)
        most = min(items.n_items, math.isqrt(_MOST_WORK**3 // items.n_items))
        if most > _LANDMARKS and found.left_out is not None:
            half = fitted(_LANDMARKS // 2, found.ridge)
            if found.loss < (1 - _WORTH_MORE) * half.loss:
                found = fitted(most, found.ridge)
        self.landmarks_, self.coef_ = found.landmarks, found.coefficients
        if found.left_out is not None:
            self.left_out_ = found.left_out
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Evaluate the fitted functions."""
        Z = self.space_.transform(features, scores)
        blocks = [
            _gaussian(Z[first : first + _BLOCK_ROWS], self.landmarks_, self.width_) @ self.coef_
            for first in range(0, Z.shape[0], _BLOCK_ROWS)
        ]
        values = np.vstack(blocks) if blocks else np.empty((0, self.coef_.shape[1]))
        return [_probabilities(self._start(features, scores) + values)]

    def out_of_sample(self, items: CalibrationSet, folds: Folds) -> list[Matrix]:
        """Leave each item out, or its group."""
        return [self.left_out_] if _can_leave_out(items) else self.cross_fitted(items, folds)

    def _fit_start(self, items: CalibrationSet) -> Matrix:
        """Fit where the functions start from, and predict the items out of sample."""
        if self.with_model:
            self.map_ = GlobalFamily("temperature", TemperatureScaling()).fit(items)
            folds = Folds.make(items.n_items, seed=self.seed, groups=items.groups)
            if len(folds) < 2:  # one of two groups, the other held out
                return self.map_.predict(items.features(), items.scores)[0]
            return self.map_.cross_fitted(items, folds)[0]
        self.frequencies_ = items.counts @ items.onehot / items.counts.sum()
        return np.broadcast_to(self.frequencies_, items.onehot.shape)

    def _start(self, features: Matrix, scores: Scores) -> Matrix:
        return self.map_.predict(features, scores)[0] if self.with_model else self.frequencies_


@dataclass(frozen=True, eq=False)
class _Fit:
    """Functions that some of the items span, and what they say of items that are left out."""

    landmarks: Matrix
    coefficients: Matrix
    ridge: float
    left_out: Matrix | None = None
    loss: float = math.nan  # of items that are left out

    @classmethod
    def to(
        cls,
        Z: Matrix,
        start: Matrix,
        items: CalibrationSet,
        order: Rows,
        width: float,
        n_landmarks: int,
        ridge: float,
    ) -> _Fit:
        """Fit functions that the first items in some order span, from a guess of the ridge on."""
        landmarks = Z[np.sort(order[:n_landmarks])]
        gram = _gaussian(landmarks, landmarks, width)
        gram[np.diag_indices_from(gram)] += _JITTER
        root = _root(gram)
        regression = _Regression(_features(Z, landmarks, root, width), start, items)
        can_leave_out = _can_leave_out(items)
        if can_leave_out and items.n_items > _TUNING_ITEMS:
            ridge = regression.tuned(ridge, _with_their_groups(order, items.groups))
        solved, inner_root = regression.solve(ridge)
        coefficients = scipy.linalg.solve_triangular(root, solved, lower=True, trans="T")
        if not can_leave_out:
            return cls(landmarks, coefficients, ridge)
        said = regression.left_out(solved, inner_root)
        return cls(landmarks, coefficients, ridge, said, _loss(said, items))


class _Regression:
    """Ridge regression of what ``start`` leaves unexplained; ``features`` is overwritten."""

    def __init__(self, features: Matrix, start: Matrix, items: CalibrationSet):
        self.start, self.items = start, items
        self.scale = np.sqrt(items.counts)
        self.weighted = np.multiply(features, self.scale, out=features)
        self.inner = self.weighted @ self.weighted.T
        self.target = self.weighted @ (self.scale[:, None] * (items.onehot - start))

    def solve(self, ridge: float) -> tuple[Matrix, Matrix]:
        """Return the coefficients, and a root of the features' products and the ridge."""
        inner = self.inner.copy()
        inner[np.diag_indices_from(inner)] += ridge
        root = _root(inner)
        return scipy.linalg.cho_solve((root, True), self.target), root

    def left_out(self, coefficients: Matrix, root: Matrix, rows: Any = slice(None)) -> Matrix:
        """Return what the fit without an item, or without its group, says about it."""
        weighted, start, items = self.weighted[:, rows], self.start[rows], self.items
        items = items if isinstance(rows, slice) else items.take(rows)
        fitted = (weighted.T @ coefficients) / np.maximum(self.scale[rows], 1e-12)[:, None]
        half = scipy.linalg.solve_triangular(root, weighted, lower=True)
        return _probabilities(start + _left_out(items.onehot - start, fitted, half, items))

    def tuned(self, ridge: float, rows: Rows) -> float:
        """Return the ridge with the best Brier score of some items, from a first guess on.

        A guess that was made on few items hardly knows the ridge of a narrow kernel: among few, no
        two items are near each other, and all ridges are alike. It is left for a larger one where
        that gains more than its error; trusting the items more than at first has to be sure.
        """
        items = self.items.take(rows)

        @cache
        def losses(place: int) -> Vector:
            return brier_losses(self.left_out(*self.solve(_RIDGES[place]), rows), items.codes)

        def better(new: int, old: int) -> bool:
            return bool(items.counts @ (losses(old) - losses(new)) > 0)

        first = _RIDGES.index(ridge)
        best = _descend(better, first, len(_RIDGES))
        gain, error = mean_and_error(losses(first) - losses(best), items.counts, items.groups)
        errors = 1.0 if best > first else _SURE
        return _RIDGES[best] if gain > errors * error else ridge


def _features(Z: Matrix, landmarks: Matrix, root: Matrix, width: float) -> Matrix:
    """Return items as columns in a basis in which the penalty is the squared length."""
    if len(landmarks) == len(Z):
        return np.array(root.T, order="F")
    similarity = _gaussian(Z, landmarks, width).T  # columns one after the other
    return scipy.linalg.solve_triangular(root, similarity, lower=True, overwrite_b=True)


def _with_their_groups(order: Rows, groups: Rows | None) -> Rows:
    """Return the first items in some order, or as many of the first whole groups."""
    if groups is None:
        return order[:_TUNING_ITEMS]
    _, first = np.unique(groups[order], return_index=True)
    chosen = groups[order[np.sort(first)]]
    enough = int(np.searchsorted(np.cumsum(np.bincount(groups)[chosen]), _TUNING_ITEMS)) + 1
    return np.flatnonzero(np.isin(groups, chosen[:enough]))


def _tuned(Z: Matrix, start: Matrix, items: CalibrationSet) -> tuple[float, float]:
    """Return the width and the ridge with the best Brier score of items, or groups, left out."""
    distance = _squared_distance(Z, Z)
    typical = float(np.median(distance[np.triu_indices_from(distance, 1)])) or 1.0

    @cache
    def best(place: int) -> tuple[float, float]:
        return _best_ridge(np.exp(-_WIDTHS[place] / typical * distance), start, items)

    place = _descend(lambda new, old: best(new) < best(old), _WIDTHS.index(1.0), len(_WIDTHS))
    return _WIDTHS[place] / typical, best(place)[1]


def _best_ridge(gram: Matrix, start: Matrix, items: CalibrationSet) -> tuple[float, float]:
    """Return the least loss of items, or groups, left out, and its ridge."""
    scale = np.sqrt(items.counts)
    residual = items.onehot - start
    values, vectors = np.linalg.eigh(scale[:, None] * gram * scale)
    projected = vectors.T @ (scale[:, None] * residual)
    found = []
    for ridge in _RIDGES:
        shrunk = np.maximum(values, 0) / (np.maximum(values, 0) + ridge)
        half = np.sqrt(shrunk)[:, None] * vectors.T
        fitted = (vectors @ (shrunk[:, None] * projected)) / np.maximum(scale, 1e-12)[:, None]
        said = _probabilities(start + _left_out(residual, fitted, half, items))
        found.append((_loss(said, items), ridge))
    return min(found)


def _loss(said: Matrix, items: CalibrationSet) -> float:
    return float(items.counts @ brier_losses(said, items.codes))


def _descend(better: Callable[[int, int], bool], place: int, n_places: int) -> int:
    """Go from a place to a neighbour that is better for as long as there is one."""
    for step in (1, -1):
        while 0 <= place + step < n_places and better(place + step, place):
            place += step
    return place


def _can_leave_out(items: CalibrationSet) -> bool:
    most = min(_LARGEST_SHARE * items.n_items, _LARGEST_GROUP)
    return items.groups is None or bool(np.bincount(items.groups).max() <= most)


def _left_out(residual: Matrix, fitted: Matrix, half: Matrix, items: CalibrationSet) -> Matrix:
    """Return what the fit without an item, or without its group, says about it.

    ``half`` has a column per item; their inner products are the hat matrix, of residuals times the
    root of the weight.
    """
    error = residual - fitted
    if items.groups is None:
        hat = np.einsum("mn,mn->n", half, half)
        return residual - error / np.maximum(1.0 - hat, _LEAST_SLACK)[:, None]
    scale = np.sqrt(items.counts)[:, None]
    without = np.empty_like(error)
    for members in _groups_by_size(items.groups):
        of_groups = half[:, members]
        hat = of_groups.transpose(1, 2, 0) @ of_groups.transpose(1, 0, 2)
        slack = (1.0 + _LEAST_SLACK) * np.eye(members.shape[1]) - hat
        without[members] = np.linalg.solve(slack, (scale * error)[members])
    return residual - without / scale


def _groups_by_size(groups: Rows) -> Iterator[NDArray[np.int64]]:
    """Yield the items of all groups of one size, a row per group."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    first = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 0]):
        yield order[first[sizes == size][:, None] + np.arange(size)]


def _probabilities(values: Matrix) -> Matrix:
    """Cut at zero, sharpen and normalise rows."""
    Q = np.maximum(values, _LEAST_PROBABILITY) ** 2
    return Q / Q.sum(axis=1, keepdims=True)


def _squared_distance(A: Matrix, B: Matrix) -> Matrix:
    distance = np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B) - 2 * (A @ B.T)
    return np.maximum(distance, 0.0, out=distance)


def _root(A: Matrix) -> Matrix:
    """Return the triangular root; systems are solved faster with its columns one after another."""
    return np.asfortranarray(np.linalg.cholesky(A), dtype=np.float64)


def _gaussian(A: Matrix, B: Matrix, width: float) -> Matrix:
    """Return exp(-width |a - b|^2), whose exponents are one product of matrices."""
    rows, columns = (-width * np.einsum("ij,ij->i", Z, Z)[:, None] for Z in (A, B))
    left = np.hstack([2 * width * A, rows, np.ones_like(rows)])
    K = left @ np.hstack([B, np.ones_like(columns), columns]).T
    np.minimum(K, 0.0, out=K)
    return np.exp(K, out=K)
