"""Pairs of conditions that matter together, also where neither says anything alone.

A search that adds one condition after the other begins with what one condition repairs. Where the
model is too high for young women and old men and too low for all others, that is nothing, for any
condition; so all pairs are looked at too. Of so many some stand out by chance: a pair counts beyond
the z-value that the largest of as many independent ones has by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix, Vector
from hetcal.heterogeneity.conditions import Condition, Mask

#: Rules that are kept while searching.
BEAM = 12
#: Only what lies beyond this many standard errors counts while searching.
SURE = 2.0
#: A longer rule must repair a tenth more than the rule it extends.
WORTH_A_CONDITION = 1.1
#: What a rule would surely repair, its conditions by number, and the class that it is about.
Rule = tuple[float, tuple[int, ...], int]

# Multiplications per rule, and numbers held; of more conditions, pairs are not looked at.
_MOST_WORK, _MOST_PAIRS = 500_000_000, 2_000_000


@dataclass(frozen=True, eq=False)
class ConditionPairs:
    """All pairs of conditions, and what does not change while rules are found.

    Attributes
    ----------
    masks : ndarray of shape (n, C)
        Which items satisfy each condition, as 0 and 1.
    weight : ndarray of shape (n,)
    mass : ndarray of shape (C, C)
        Weight of the items that satisfy both conditions.
    error : ndarray of shape (K, C, C)
        Standard error of the sum of their residuals.
    allowed : ndarray of shape (C, C)
        Pairs that are not too small, each once.
    """

    masks: Matrix
    weight: Vector
    mass: Matrix
    error: Matrix
    allowed: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        conditions: list[Condition],
        masks: Mask,
        spread: Matrix,
        weight: Vector,
        min_count: int,
    ) -> Self | None:
        """Return the pairs, None where they are too many to look at."""
        n_pairs = masks.shape[1] ** 2 * spread.shape[1]
        if n_pairs > _MOST_PAIRS or n_pairs * len(masks) > _MOST_WORK:
            return None
        inside = masks.astype(np.float64)
        # A second cut of the same kind on the same column only repeats the narrower one.
        kinds = [f"{condition.column} {condition.kind}" for condition in conditions]
        number = np.unique(kinds, return_inverse=True)[1]
        allowed = np.triu(inside.T @ inside >= min_count) & (number[:, None] != number)
        variance = np.stack([_sums(inside, part * weight**2) for part in spread.T])
        mass, error = _sums(inside, weight), np.sqrt(np.maximum(variance, 0.25))
        return cls(inside, weight, np.maximum(mass, 1e-300), error, allowed)

    def standing_out(self, residuals: Matrix) -> list[Rule]:
        """Return pairs that surely repair something, and more than either condition alone.

        Parameters
        ----------
        residuals : ndarray of shape (n, K)
            What earlier rules left of label minus probability, by class.
        """
        total = np.abs([_sums(self.masks, part * self.weight) for part in residuals.T])
        repair = np.maximum(total - SURE * self.error, 0.0) ** 2 / self.mass
        alone = np.diagonal(repair, axis1=1, axis2=2).max(axis=0)
        by_chance = np.sqrt(2 * np.log(max(int(self.allowed.sum()) * len(total), 2)))
        better = repair > WORTH_A_CONDITION * np.maximum(alone[:, None], alone)
        counts = self.allowed & (total > by_chance * self.error) & better
        repair = np.where(counts, repair, 0.0)
        best = np.argsort(-repair, axis=None, kind="stable")[:BEAM]
        return [
            (float(repair[k, a, b]), (int(a), int(b)), int(k))
            for k, a, b in zip(*np.unravel_index(best, repair.shape), strict=True)
            if repair[k, a, b] > 0
        ]


def _sums(inside: Matrix, values: Vector) -> Matrix:
    """Return the sums of values over the items that satisfy each two conditions."""
    return inside.T @ (inside * values[:, None])
