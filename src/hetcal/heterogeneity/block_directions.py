r"""The best few blocks for each fold, chosen and fitted by least squares on the other folds.

For a fixed space V of functions, the least-squares prediction d of a fold's residuals has

.. math:: E[r \cdot d] = \|\Pi_V f\|^2 \le GL, \qquad f = P(y \mid x) - P(y \mid p) .

There is no division by :math:`|d|^2`, which holds the noise of d besides its signal: not knowing
the direction costs variance, but no part of the estimate. A block that was chosen for its noise on
the other folds adds nothing on average, since the fold's own residuals had no part in the choice.
A direction of the dictionary that stands out on the other folds is a block of one function: a
threshold far out or a sign of a product needs many cosines.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import chdtri, expit

from hetcal._typing import Matrix, Rows, Vector
from hetcal.heterogeneity.blocks import Block, Floats, blocks_of
from hetcal.heterogeneity.residual_learners import Task

_KEPT = 20  # blocks that are looked at together
_STEPS = 5
_ITEMS_PER_FUNCTION = 5
_RIDGE = 1e-3
_LEVEL = 0.01
_LEAST_SPREAD = 0.05  # beside p (1 - p): what is said for certain may be wrong too
_NONE = np.empty(0, dtype=np.int64)


def block_directions(task: Task) -> Matrix:
    """Predict the residuals of each fold by the blocks that explain those of the others."""
    search = _Search(task)
    blocks = [
        block for block in blocks_of(task.dictionary.columns, task.odds) if search.fits(block)
    ]
    families = [block.family for block in blocks]
    levels = [_LEVEL / families.count(family) for family in families]
    scores = [search.best_score(*both) for both in zip(blocks, levels, strict=True)]
    kept = np.argsort(-np.array(scores), kind="stable")[:_KEPT]
    return search.predict([blocks[k] for k in kept], [levels[k] for k in kept])


def surely_there(signal: Matrix, noise: Matrix, freedom: float, quantile: float | Vector) -> Matrix:
    """Return the least squared length that explains an estimate ``signal`` of it.

    The estimate has the variance ``2 freedom noise^2 + 4 length noise``, by which it may exceed
    the length ``quantile`` standard deviations.
    """
    u, z2 = np.maximum(signal, 0.0) / noise, quantile**2
    middle = u + 2 * z2
    return noise * (middle - np.sqrt(middle**2 - u**2 + 2 * freedom * z2))


@cache
def _quantile(level: float, freedom: int) -> float:
    """Return by how many standard deviations noise alone exceeds its mean at a level."""
    return float((chdtri(freedom, level) - freedom) / np.sqrt(2 * freedom))


@dataclass(frozen=True, eq=False)
class _Moments:
    """Products of functions with each other and with residuals, outside a fold or each fold.

    Attributes
    ----------
    gram : ndarray of shape (..., m, m)
    moment : ndarray of shape (..., m, C)
    """

    gram: Matrix
    moment: Matrix

    def of(self, part: Rows) -> _Moments:
        """Return those of some functions, or (P, m) those of several parts."""
        gram = self.gram[..., part[..., :, None], part[..., None, :]]
        return _Moments(gram, self.moment[..., part, :])

    def of_fold(self, j: int) -> _Moments:
        """Return those outside one fold."""
        return _Moments(self.gram[j], self.moment[j])

    def less(self, chosen: Rows) -> _Moments:
        """Return those of all functions, less what chosen ones explain of them."""
        beside = self.gram[chosen]
        share = np.linalg.solve(_ridged(beside[:, chosen]), beside)
        return _Moments(self.gram - beside.T @ share, self.moment - share.T @ self.moment[chosen])

    def along(self, contrast: Matrix) -> _Moments:
        """Return those of a contrast of the classes."""
        return _Moments(self.gram, self.moment @ contrast)

    def squares(self) -> Matrix:
        """Return the squared lengths of the residuals' projections, (..., C, C)."""
        return np.swapaxes(self.moment, -1, -2) @ self.coefficients()

    def coefficients(self) -> Matrix:
        """Return those of least squares."""
        return np.asarray(np.linalg.solve(_ridged(self.gram), self.moment), dtype=np.float64)


def _ridged(gram: Matrix) -> Matrix:
    m = gram.shape[-1]
    size = np.trace(gram, axis1=-2, axis2=-1)[..., None, None] / m
    return gram + (_RIDGE * size + 1e-12) * np.eye(m)


def _best_contrast(
    moments: _Moments, noise: Matrix, quantile: float | Vector
) -> tuple[Vector, Matrix]:
    """Return the size that is sure along the best contrast of the classes, and the contrast."""
    m, others = moments.gram.shape[-1], len(noise) - 1
    size, vectors = np.linalg.eigh(moments.squares() - m * noise)
    contrast = vectors[..., -1]
    own = ((contrast @ noise) * contrast).sum(axis=-1)
    # The choice of the contrast has as many degrees of freedom as there are others.
    signal = size[..., -1] - others * own
    return surely_there(signal, own, m + others, quantile), contrast


def _all_classes(moments: _Moments, noise: Matrix, quantile: float | Vector) -> Vector:
    """Return the size that is sure over all classes."""
    m, total = moments.gram.shape[-1], np.trace(noise)
    scale = (noise**2).sum() / total
    signal = np.trace(moments.squares(), axis1=-2, axis2=-1) - m * total
    return surely_there(signal, scale, m * total / scale, quantile)


def _spread(odds: Matrix) -> Floats:
    """Return how far one unit of log-odds moves the probability, for two classes."""
    if odds.shape[1] > 1:
        return np.ones((len(odds), 1), dtype=np.float32)
    p = expit(odds)
    return (4 * (p * (1 - p) + _LEAST_SPREAD)).astype(np.float32)


class _Search:
    """Blocks on the items of a task, sorted by fold."""

    def __init__(self, task: Task):
        self.task = task
        self.order = np.argsort(task.folds.number, kind="stable")
        self.ends = np.cumsum(np.bincount(task.folds.number, minlength=len(task.folds)))
        w, R = task.weight[:, None], task.residuals
        noise = (w * R).T @ (w * R) / w.sum()
        # Classes sum to one, and a class may be missing: contrasts without noise say nothing.
        self.noise = noise + 1e-6 * np.trace(noise) * np.eye(len(noise))
        J, n, C = task.residuals_by_fold.shape
        by_item = task.residuals_by_fold.transpose(1, 0, 2).reshape(n, J * C)
        self.weighted = (w * by_item)[self.order].astype(np.float32)
        self.root = np.sqrt(w)[self.order].astype(np.float32)
        self.spread = _spread(task.odds)

    def fits(self, block: Block) -> bool:
        """Whether there are enough items for so many functions."""
        return len(block.parts[-1]) * _ITEMS_PER_FUNCTION <= len(self.order)

    def values(self, block: Block) -> Floats:
        """Return the block's functions less functions of p, items sorted by fold."""
        free = self.task.space.residual(block.values() * self.spread)
        return free[self.order].astype(np.float32)

    def moments(self, values: Floats) -> _Moments:
        """Return the moments outside each fold."""
        J, C = len(self.ends), self.task.residuals.shape[1]
        parts = np.split(values * self.root, self.ends[:-1])
        inside = np.stack([part.T @ part for part in parts]).astype(np.float64)
        moment = (values.T @ self.weighted).astype(np.float64).reshape(-1, J, C)
        return _Moments(inside.sum(axis=0) - inside, moment.transpose(1, 0, 2))

    def best_score(self, block: Block, level: float) -> float:
        """Return the largest size that the others of any fold are sure of."""
        moments = self.moments(self.values(block))
        return max(
            float(self._score(moments.of(part), _quantile(level, len(part))).max())
            for part in block.parts
        )

    def _score(self, moments: _Moments, quantile: float) -> Vector:
        score = _all_classes(moments, self.noise, quantile)
        if len(self.noise) == 1:
            return score
        return np.maximum(score, _best_contrast(moments, self.noise, quantile)[0])

    def predict(self, blocks: list[Block], levels: list[float]) -> Matrix:
        """Choose blocks for each fold, and predict it by least squares on them."""
        values = [self.values(block) for block in blocks]
        starts = np.cumsum([0] + [part.shape[1] for part in values])
        parts = [
            (start + part, level)
            for start, block, level in zip(starts[:-1], blocks, levels, strict=True)
            for part in block.parts
        ]
        single, of_fold = self._single_directions(int(starts[-1]))
        Z = np.hstack([*values, single])
        moments = self.moments(Z)
        found = np.zeros_like(self.task.residuals)
        for j, rows in enumerate(np.split(np.arange(len(Z)), self.ends[:-1])):
            chosen, coefficients = self._choose(moments.of_fold(j), _by_size(parts + of_fold[j]))
            found[self.order[rows]] = Z[rows][:, chosen] @ coefficients
        return found

    def _single_directions(self, start: int) -> tuple[Floats, list[list[tuple[Rows, float]]]]:
        """Return the directions that stand out on the others of any fold, and each fold's own."""
        task = self.task
        which = np.unique(np.concatenate(task.candidates))
        values = task.dictionary.values(slice(None), which) * self.spread
        free = task.space.residual(values)[self.order].astype(np.float32)
        kinds = [direction.kind for direction in task.dictionary.directions]
        among = Counter(kinds)
        level = {k: _LEVEL / among[kinds[k]] for k in which.tolist()}
        return free, [
            [(np.array([start + np.searchsorted(which, k)]), level[k]) for k in own.tolist()]
            for own in task.candidates
        ]

    def _choose(self, moments: _Moments, parts: list[_Parts]) -> tuple[Rows, Matrix]:
        """Add the part of a block that is surest while one is, for all classes or a contrast."""
        best, chosen = _pursue(moments, self.noise, parts)
        if len(self.noise) == 1:
            return chosen, moments.of(chosen).coefficients()
        score, contrast = _surest_contrast(moments, self.noise, parts)
        if score <= max(best, 0.0):
            return chosen, moments.of(chosen).coefficients()
        one = contrast[:, None]
        _, chosen = _pursue(moments.along(one), one.T @ self.noise @ one, parts)
        return chosen, moments.of(chosen).along(one).coefficients() @ one.T


@dataclass(frozen=True, eq=False)
class _Parts:
    """Parts of blocks with the same number of functions.

    Attributes
    ----------
    functions : ndarray of shape (P, m)
        Their numbers.
    quantiles : ndarray of shape (P,)
        What noise reaches at the part's own level.
    """

    functions: Rows
    quantiles: Vector


def _by_size(parts: list[tuple[Rows, float]]) -> list[_Parts]:
    """Put parts of one size together: their scores are computed at once."""
    sizes = sorted({len(part) for part, _ in parts})
    found = []
    for m in sizes:
        same = [(part, _quantile(level, m)) for part, level in parts if len(part) == m]
        found.append(_Parts(np.stack([part for part, _ in same]), np.array([q for _, q in same])))
    return found


def _pursue(moments: _Moments, noise: Matrix, parts: list[_Parts]) -> tuple[float, Rows]:
    """Return the score of the first part, and the functions of all; the first in any case."""
    chosen, first, left = _NONE, -np.inf, moments
    for step in range(_STEPS):
        scores = [_all_classes(left.of(same.functions), noise, same.quantiles) for same in parts]
        size = int(np.argmax([part.max() for part in scores]))
        at = int(scores[size].argmax())
        if step and scores[size][at] <= 0:
            break
        first = float(scores[size][at]) if step == 0 else first
        chosen = np.union1d(chosen, parts[size].functions[at])
        left = moments.less(chosen)
    return first, chosen


def _surest_contrast(moments: _Moments, noise: Matrix, parts: list[_Parts]) -> tuple[float, Vector]:
    """Return the largest size that is sure along a contrast of the classes, and the contrast."""
    best, found = -np.inf, np.zeros(len(noise))
    for same in parts:
        scores, contrasts = _best_contrast(moments.of(same.functions), noise, same.quantiles)
        at = int(scores.argmax())
        if scores[at] > best:
            best, found = float(scores[at]), contrasts[at]
    return best, found
