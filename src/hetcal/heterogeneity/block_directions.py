r"""The best few blocks for each fold, chosen and fitted by least squares on the other folds.

For a fixed space V of functions, the least-squares prediction d of a fold's residuals has

.. math:: E[r \cdot d] = \|\Pi_V f\|^2 \le GL, \qquad f = P(y \mid x) - P(y \mid p) .

There is no division by :math:`|d|^2`, which holds the noise of d besides its signal: not knowing
the direction costs variance, but no part of the estimate. A block that was chosen for its noise on
the other folds adds nothing on average, since the fold's own residuals had no part in the choice.
A direction of the dictionary that stands out on the other folds is a block of one function: a
threshold far out or a sign of a product needs many cosines.

What a function of the features does to the probabilities is a shift of their logarithms
(:mod:`hetcal.heterogeneity.class_shifts`): it moves classes that are likely more than others, and
nothing where p is certain.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from hetcal._typing import Matrix, Rows
from hetcal.heterogeneity.block_choice import (
    Chosen,
    Moments,
    by_size,
    choose,
    least_squares,
    sure_size,
)
from hetcal.heterogeneity.blocks import Block, Floats, blocks_of
from hetcal.heterogeneity.class_shifts import ClassShifts
from hetcal.heterogeneity.residual_learners import Task

_KEPT = 20  # blocks that are looked at together
_ITEMS_PER_FUNCTION = 5
_LEVEL = 0.01  # for all blocks of a kind


def block_directions(task: Task) -> Matrix:
    """Predict the residuals of each fold by the blocks that explain those of the others."""
    search = _Search(task)
    blocks = [
        block for block in blocks_of(task.dictionary.columns, task.odds) if search.fits(block)
    ]
    families = Counter(block.family for block in blocks)
    levels = [_LEVEL / families[block.family] for block in blocks]
    scores = [search.best_score(*both) for both in zip(blocks, levels, strict=True)]
    kept = np.argsort(-np.array(scores), kind="stable")[:_KEPT]
    return search.predict([blocks[k] for k in kept], [levels[k] for k in kept])


class _Search:
    """Blocks on the items of a task, sorted by fold."""

    def __init__(self, task: Task):
        self.task = task
        self.order = np.argsort(task.folds.number, kind="stable")
        self.ends = np.cumsum(np.bincount(task.folds.number, minlength=len(task.folds)))
        self.weight = task.weight[self.order]
        self.residuals = task.residuals_by_fold[:, self.order]
        self.shifts = shifts = ClassShifts.of(task.law[self.order], self.weight)
        # Of a function times a contrast, the score; and the square that its variance is made of.
        scores = np.hstack([residuals @ shifts.contrasts for residuals in self.residuals])
        squares = ((task.residuals[self.order] @ shifts.contrasts) ** 2).mean(axis=1)
        self.scores = (self.weight[:, None] * scores).astype(np.float32)
        self.squares = (self.weight**2 * squares).astype(np.float32)
        self.root = (np.sqrt(self.weight) * shifts.spread)[:, None].astype(np.float32)

    def fits(self, block: Block) -> bool:
        """Whether there are enough items for so many functions."""
        return len(block.parts[-1]) * _ITEMS_PER_FUNCTION <= len(self.order)

    def values(self, functions: Floats) -> Floats:
        """Return functions less functions of p, items sorted by fold."""
        return self.task.space.residual(functions)[self.order].astype(np.float32)

    def moments(self, values: Floats) -> Moments:
        """Return the moments outside each fold."""
        m, J = values.shape[1], len(self.ends)
        parts = np.split(values * self.root, self.ends[:-1])
        inside = np.stack([part.T @ part for part in parts]).astype(np.float64)
        moment = (values.T @ self.scores).astype(np.float64).reshape(m, J, -1)
        # A function may be large where residuals are larger, or smaller, than h(p) says.
        variance = (values**2).T @ self.squares / (np.einsum("jmm->m", inside) + 1e-12)
        moment /= np.sqrt(variance + 1e-6)[:, None, None]
        return Moments(inside.sum(axis=0) - inside, moment.transpose(1, 0, 2))

    def best_score(self, block: Block, level: float) -> float:
        """Return the largest size of a part that the others of any fold are sure of."""
        moments = self.moments(self.values(block.values()))
        found = []
        for part in block.parts:
            square, contrasts = moments.of(part).best_contrast()
            levels = np.full(len(square), level)
            found.append(float(sure_size(square, len(part), contrasts.shape[-1], levels).max()))
        return max(found)

    def predict(self, blocks: list[Block], levels: list[float]) -> Matrix:
        """Choose blocks for each fold, and predict it by least squares on them."""
        values = [self.values(block.values()) for block in blocks]
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
            chosen = choose(moments.of_fold(j), by_size(parts + of_fold[j]))
            found[self.order[rows]] = self._predict_fold(j, rows, Z, chosen)
        return found

    def _single_directions(self, start: int) -> tuple[Floats, list[list[tuple[Rows, float]]]]:
        """Return the directions that stand out on the others of any fold, and each fold's own."""
        task = self.task
        which = np.unique(np.concatenate(task.candidates))
        kinds = [direction.kind for direction in task.dictionary.directions]
        among = Counter(kinds)
        level = {k: _LEVEL / among[kinds[k]] for k in which.tolist()}
        return self.values(task.dictionary.values(slice(None), which)), [
            [(np.array([start + np.searchsorted(which, k)]), level[k]) for k in own.tolist()]
            for own in task.candidates
        ]

    def _predict_fold(self, j: int, rows: Rows, Z: Floats, chosen: list[Chosen]) -> Matrix:
        """Predict a fold by least squares on chosen functions, each along its contrast."""
        both = [(Z[:, one.functions], self.shifts.moved(one.contrast)) for one in chosen]
        by_class = [
            np.hstack([z * moved[:, [k]] for z, moved in both])
            for k in range(self.residuals.shape[2])
        ]
        gram: Matrix = np.zeros(2 * by_class[0].shape[1:])
        moment: Matrix = np.zeros((len(gram), 1))
        # The fold's own residuals are zero here, and its functions are left out.
        w = np.sqrt(self.weight)[:, None]
        w[rows] = 0.0
        for k, functions in enumerate(by_class):
            weighted = w * functions
            gram += weighted.T @ weighted
            moment += weighted.T @ (w * self.residuals[j][:, [k]])
        coefficients = least_squares(gram, moment)
        return np.hstack([functions[rows] @ coefficients for functions in by_class])
