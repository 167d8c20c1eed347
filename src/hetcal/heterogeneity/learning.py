"""What learners find behind p on other folds, as a test, as a size, and region by region."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr

from hetcal._typing import Matrix, Rows
from hetcal.data import CalibrationSet, Folds
from hetcal.heterogeneity.block_directions import block_directions
from hetcal.heterogeneity.dictionary import Dictionary
from hetcal.heterogeneity.functions_of_p import GlobalFit
from hetcal.heterogeneity.global_part import global_gains
from hetcal.heterogeneity.grouping_loss import FoundPart, found_part, size_along
from hetcal.heterogeneity.limits import least_p, n_groups, nothing_to_test
from hetcal.heterogeneity.regions import Regions
from hetcal.heterogeneity.residual_learners import (
    FAST,
    WITHOUT_TEST,
    Learner,
    Task,
    free_values,
    pursue,
    stacked,
)
from hetcal.heterogeneity.score_test import (
    Outcomes,
    Scores,
    harmonic_p_value,
    score_test,
    scores_by_fold,
)
from hetcal.metrics.standard_errors import mean_and_error

_FOLDS, _FOLDS_OF_MANY, _MANY_ITEMS = 5, 3, 20_000
_FOLDS_OF_SIZE = 10
SHARE_OF_DICTIONARY = 0.8  # of the level; learners share the rest
# Every pair of folds teaches both ways, which doubles the variance of a linear learner's statistic;
# of trees, averaged over splits, the standard deviation is 1.1 to 1.3 over the developing nulls.
_BOTH_WAYS = 1.25
# Splits by the number of items: those that what is found is averaged over, and those that a p-value
# is, which should hardly depend on the luck of any. One split moves z by about 0.6.
_REPEATS = ((1000, 8), (3000, 3), (np.inf, 1))
_REPEATS_TESTED = ((1000, 32), (2000, 16), (3000, 5), (np.inf, 2))
# Where a learner's p-value is near the usual levels, so many times as many splits.
_UNCLEAR, _MORE_SPLITS = (1e-4, 0.05), 3
_CANDIDATES = 40
_MOST_CLASSES = 20


@dataclass(frozen=True, eq=False)
class Learning:
    """What the learners need of the items."""

    items: CalibrationSet
    fit: GlobalFit
    dictionary: Dictionary
    odds: Matrix
    scores: Scores
    learners: dict[str, Learner]

    @property
    def residuals(self) -> Matrix:
        """One column for two classes."""
        R = self.fit.residuals
        return R[:, 1:] if R.shape[1] == 2 else R

    def learn(self, seed: int, tested: bool = True) -> tuple[dict[str, float], Matrix]:
        """Return each tested learner's p-value, and the learners' directions together."""
        local = np.zeros_like(self.residuals)
        if not self.learners:
            return {}, local
        repeats = self._repeats(_REPEATS)
        z: dict[str, list[float]] = {
            name: [] for name in self.learners if tested and name not in WITHOUT_TEST
        }
        often = [name for name in z if name in FAST]
        n_splits = self._repeats(_REPEATS_TESTED) if often else repeats
        for number, task in enumerate(self._tasks(seed, range(n_splits))):
            found = self._directions(task, list(self.learners) if number < repeats else often)
            for name in z.keys() & found.keys():
                z[name].append(self._part(found[name]).z)
            if number < repeats:
                local += stacked(list(found.values()), task) / repeats
        unclear = [name for name in often if self._unclear(z[name])]
        if unclear:
            for task in self._tasks(seed, range(n_splits, _MORE_SPLITS * n_splits)):
                for name, direction in self._directions(task, unclear).items():
                    z[name].append(self._part(direction).z)
        return {name: self._p_value(float(np.mean(values))) for name, values in z.items()}, local

    def _unclear(self, z: list[float]) -> bool:
        """Whether other splits could move the p-value over a level that people use."""
        return _UNCLEAR[0] <= self._p_value(float(np.mean(z))) <= _UNCLEAR[1]

    def _repeats(self, table: tuple[tuple[float, int], ...]) -> int:
        return next(times for most, times in table if self.items.n_items <= most)

    def _directions(self, task: Task, names: list[str]) -> dict[str, Matrix]:
        """Return some learners' out-of-fold directions, less what p says of each as a whole."""
        return {name: self.fit.space.residual(self.learners[name](task)) for name in names}

    def size(self, seed: int, alpha: float) -> tuple[float, float]:
        """Return the lower bound on what is hidden, and the part that was found."""
        if not self.learners:
            return 0.0, 0.0
        items, space = self.items, self.fit.space
        folds = Folds.make(items.n_items, _FOLDS_OF_SIZE, seed=[seed, 4], groups=items.groups)
        (task,) = self._tasks_on([folds])
        # Of very many classes those with most to explain: a part of what is hidden.
        spread = (task.law * (1 - task.law)).mean(axis=0)
        most = np.sort(np.argsort(-spread, kind="stable")[:_MOST_CLASSES])
        task = replace(task, residuals=self.residuals[:, most], law=task.law[:, most])
        direction = space.residual(block_directions(task))
        return size_along(task.residuals, direction, space.weight, items.groups, alpha)

    def _tasks(self, seed: int, repeats: range) -> list[Task]:
        """Return the same task on several splits: the average depends less on any of them."""
        n = self.items.n_items
        n_folds = _FOLDS if n <= _MANY_ITEMS else _FOLDS_OF_MANY
        splits = [
            Folds.make(n, n_folds, seed=[seed, 2, repeat], groups=self.items.groups)
            for repeat in repeats
        ]
        return self._tasks_on(splits)

    def _tasks_on(self, splits: list[Folds]) -> list[Task]:
        """Return the task on each of some splits."""
        sums = scores_by_fold(self.scores, self.fit, self.dictionary, self.residuals, splits)
        return [
            Task(
                self.residuals,
                folds,
                self.fit.space.weight,
                self.dictionary,
                self.odds,
                self.fit.proba[:, -self.residuals.shape[1] :],
                self.fit.space,
                [self.stand_out(part.sum(axis=2) - part[:, :, j]) for j in range(len(folds))],
            )
            for folds, part in zip(splits, sums, strict=True)
        ]

    def combined(self, dictionary: float, parts: dict[str, float]) -> float:
        """Return the p-value of the dictionary and the learners together."""
        p = dictionary
        for learner in parts.values():
            p = harmonic_p_value(p, learner, SHARE_OF_DICTIONARY ** (1 / len(parts)))
        return max(p, least_p(self.items))

    def found(self, local: Matrix, alpha: float) -> FoundPart:
        """Return the size along the direction of all learners."""
        return self._part(self.fit.space.residual(local), alpha)

    def gains(self, local: Matrix) -> Matrix:
        """Return each item's gain by the global map, and by the direction of all learners.

        The direction is scaled to gain most, and shrunk by what its own error explains.
        """
        d, R = self.fit.space.residual(local), self.residuals
        space = self.fit.space
        product, square = (R * d).sum(axis=1), (d**2).sum(axis=1)
        a, error = map(float, mean_and_error(product, space.weight, self.items.groups))
        b = float(np.average(square, weights=space.weight)) + 1e-15
        f = max(a, 0.0) / b * max(1 - np.nan_to_num(error) ** 2 / (a**2 + 1e-30), 0.0)
        both = 2.0 if R.shape[1] == 1 else 1.0
        gain = both * (2 * f * product - f**2 * square)
        return np.column_stack([global_gains(self.items, self.fit), gain])

    def by_region(
        self, regions: Regions, local: Matrix, seed: int, alpha: float, tested: bool
    ) -> pd.DataFrame:
        """Test the items of each region among themselves; regions share no items."""
        place = regions.number(self.items.proba)
        p_values, low = np.full(len(regions), np.nan), np.zeros(len(regions))
        for number in range(len(regions) if tested else 0):
            rows = np.flatnonzero(place == number)
            part = self._take(rows)
            if nothing_to_test(part.items, part.dictionary.columns) is not None:
                continue
            outcomes = Outcomes.of(part.fit, part.items.proba)
            rng = np.random.default_rng([seed, 3, number])
            scores = score_test(part.fit, outcomes, part.dictionary, part.items.groups, rng)
            found = part.found(local[rows], alpha)
            p = part.combined(scores.p_value, {"learners": part._p_value(found.z)})
            p_values[number] = p
            low[number] = found.low if p <= alpha else 0.0
        return regions.table(p_values, low, np.bincount(place, minlength=len(regions)))

    def _take(self, rows: Rows) -> Learning:
        """Return the same for some items, with the functions of p on them."""
        items = self.items.take(rows)
        fit = self.fit.take(rows, items.groups)
        return replace(self, items=items, fit=fit, dictionary=self.dictionary.take(rows))

    def carried_by(self) -> tuple[tuple[str, Any, float], ...]:
        """Name the directions that carry what was found."""
        which = self.stand_out(self.scores.sums)
        F = free_values(self.fit.space, self.dictionary, which)
        chosen, _ = pursue(F, self.residuals, self.fit.space.weight)
        z = self.scores.z[which[chosen]]
        classes = self.items.classes[self.scores.classes].tolist()
        best = np.abs(z[:, : len(classes)]).argmax(axis=1)
        return tuple(
            (self.dictionary.words(int(number)), classes[k], float(row[k]))
            for number, k, row in zip(which[chosen], best, z, strict=True)
        )

    def stand_out(self, sums: Matrix) -> Rows:
        """Return the directions with the largest scores, one of each kind and column."""
        strength = (sums**2).sum(axis=1) / self.scores.squares
        kept: dict[tuple, int] = {}
        for number in np.argsort(-strength, kind="stable").tolist():
            direction = self.dictionary.directions[number]
            if direction.kind == "component":
                continue  # of all columns, which nobody could name
            kept.setdefault((direction.kind, direction.columns), number)
            if len(kept) == _CANDIDATES:
                break
        return np.array(list(kept.values()), dtype=np.int64)

    def _part(self, direction: Matrix, alpha: float = 0.05) -> FoundPart:
        space = self.fit.space
        return found_part(self.residuals, direction, space.weight, self.items.groups, alpha)

    def _p_value(self, z: float) -> float:
        z = z / _BOTH_WAYS
        groups = n_groups(self.items)
        return float(stdtr(groups - 1, -z) if groups else ndtr(-z))
