"""The calibration items as the experts see them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, StratifiedKFold

from hetcal.calibration.base import Scores
from hetcal.kernels.simplex import log_probabilities

Matrix = NDArray[np.float64]

# Below this a probability says no more than "never"; logarithms stay within reach of a tree.
_LOG_FLOOR = 1e-12


@dataclass(frozen=True)
class Problem:
    """Calibration items: features, the classifier's scores, labels, weights, and folds.

    With ``groups`` (numbers 0..G-1) only the folds keep related items apart, so that out-of-bag and
    leave-one-out predictions would leak.
    """

    features: Matrix
    scores: Scores
    codes: NDArray[np.int64]
    n_classes: int
    weight: Matrix
    folds: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None

    @property
    def n_items(self) -> int:
        """Number of calibration items."""
        return self.codes.shape[0]

    @property
    def grouped(self) -> bool:
        """Whether items belong together."""
        return self.groups is not None

    @property
    def onehot(self) -> Matrix:
        """Labels as one-hot rows."""
        return np.eye(self.n_classes)[self.codes]

    @property
    def weighted(self) -> Matrix | None:
        """The weights, or None where all are equal (which lets forests use the compiled core)."""
        return None if np.all(self.weight == self.weight[0]) else self.weight

    def part(self, rows: NDArray[np.bool_]) -> Problem:
        """Return some of the items as a problem of their own."""
        return replace(
            self,
            features=self.features[rows],
            scores=rows_of(self.scores, rows),
            codes=self.codes[rows],
            weight=self.weight[rows],
            folds=self.folds[rows],
            groups=None if self.groups is None else self.groups[rows],
        )


def rows_of(scores: Scores, rows: NDArray | slice) -> Scores:
    """Return the scores of some rows."""
    return Scores(scores.proba[rows], scores.log_proba[rows])


def clipped_logs(scores: Scores) -> Matrix:
    """Return log p, cut where it no longer says anything."""
    return np.maximum(scores.log_proba, log_probabilities(np.zeros(1), _LOG_FLOOR))


def group_sums(values: Matrix, groups: NDArray[np.int64] | None) -> Matrix:
    """Return the sums over groups: items of one group are not independent of each other."""
    return values if groups is None else np.bincount(groups, values).astype(np.float64)


def make_folds(
    codes: NDArray[np.int64], groups: NDArray[np.int64] | None, n_folds: int, seed: int
) -> NDArray[np.int64]:
    """Return the fold of each item: stratified by class, or by group where there are groups."""
    n = codes.shape[0]
    folds = np.empty(n, dtype=np.int64)
    if groups is not None:
        splits = GroupKFold(min(n_folds, int(groups.max()) + 1)).split(codes, groups=groups)
    else:
        # A class with fewer items than folds cannot be in every fold: it counts as a common rest.
        counts = np.bincount(codes)
        strata = np.where(counts[codes] >= n_folds, codes, -1)
        if np.sum(strata == -1) < n_folds:
            strata = np.where(strata == -1, np.argmax(counts), strata)
        splits = StratifiedKFold(min(n_folds, n), shuffle=True, random_state=seed).split(
            strata, strata
        )
    for number, (_, held_out) in enumerate(splits):
        folds[held_out] = number
    return folds
