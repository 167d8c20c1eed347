"""Scores of items that nothing has changed for, and the scores of new items, treated alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._validation import FeatureEncoder
from hetcal.monitor import ranks
from hetcal.monitor.distance import SCORES

Vector = NDArray[np.float64]

SUPPORT = "support"
LEAST_ITEMS = 20
_BLOCK_ROWS = 1 << 14


@dataclass(eq=False)
class Reference:
    """Reference items.

    Attributes
    ----------
    scores : ndarray of shape (n_scores, n)
        Support first, then the distance score where there is one; low is strange.
    n_trees : list of (ndarray of shape (n,) or None)
        By how many trees each score was counted; None: not by trees, or by all.
    top : ndarray of int of shape (n,) or None
        The class that the classifier thinks most probable.
    by : ndarray of str of shape (n,) or None
        Names of sub-populations.
    rows : ndarray of int of shape (n,) or None
        Which of the calibration items these are; None: all.
    """

    scores: Vector
    n_trees: list[Any]
    top: NDArray[np.int64] | None = None
    by: NDArray | None = None
    rows: NDArray[np.int64] | None = None

    @cached_property
    def ordered(self) -> list[Vector]:
        """Each score, sorted."""
        return [np.sort(row) for row in self.scores]

    @cached_property
    def ordered_pairs(self) -> Vector:
        """The smallest rank of each item, sorted."""
        return np.sort(ranks.pair_scores(self.ordered, list(self.scores), inside=True))

    def p_values(self, scores: Vector, rng: np.random.Generator) -> tuple[Vector, Vector]:
        """Return one p-value per score, shape (n_scores, m), and one for all scores together.

        The latter ranks each item by the smaller of its ranks, among the smaller ranks of the
        reference: the level is split between the scores, and uniform all the same.
        """
        uniform = rng.random((len(scores) + 1, scores.shape[1]))
        each = [
            ranks.p_values(*pair) for pair in zip(self.ordered, scores, uniform[:-1], strict=True)
        ]
        if len(each) == 1:
            return np.stack(each), each[0]
        together = ranks.pair_scores(self.ordered, list(scores), inside=False)
        return np.stack(each), ranks.p_values(self.ordered_pairs, together, uniform[-1])


class Scorer:
    """Scores new items like the reference: by support, and by distance where that was fitted.

    Attributes
    ----------
    calibrator : SimilarityCalibrator or HybridCalibrator
    encoder : FeatureEncoder or None
        For the distance score.
    distance : IsolationScore, NearestScore or None
    """

    def __init__(
        self, calibrator: Any, encoder: FeatureEncoder | None = None, distance: Any = None
    ):
        self.calibrator = calibrator
        self.encoder = encoder
        self.distance = distance

    def with_calibrator(self, calibrator: Any) -> Scorer:
        """Return the same scores by the calibrator in another state."""
        return Scorer(calibrator, self.encoder, self.distance)

    def fit_distance(self, kind: str, X: Any, seed: int) -> tuple[Vector, Any]:
        """Fit the distance score on items, and return their out-of-sample scores and trees."""
        self.encoder = FeatureEncoder(missing="impute").fit(X)
        F = self._encoded(X)
        self.distance = SCORES[kind]().fit(F, seed)
        return self.distance.out_of_sample(F)

    def fit_distance_apart(self, kind: str, X: Any) -> None:
        """Fit the distance score on items that are no reference."""
        self.encoder = FeatureEncoder(missing="impute").fit(X)
        self.distance = SCORES[kind]().remember(self._encoded(X))

    def scores(
        self, X: Any, output: dict[str, Any], n_trees: list[Any], rng: np.random.Generator
    ) -> Vector:
        """Return the scores of new items, shape (n_scores, m).

        ``n_trees`` holds, per score, the numbers of trees of the reference; each new item gets one
        of them at random.
        """
        m = _n_rows(X)
        draws = [None if known is None else rng.choice(known, m) for known in n_trees]
        given = {} if draws[0] is None else {"n_trees": draws[0], "random_state": rng}
        rows = [self.calibrator.support(X, **output, **given)]
        if self.distance is not None:
            F = self._encoded(X)
            blocks = [slice(a, a + _BLOCK_ROWS) for a in range(0, m, _BLOCK_ROWS)]
            parts = [
                self.distance.score(F[b], None if draws[1] is None else draws[1][b], rng)
                for b in blocks
            ]
            rows.append(np.concatenate(parts) if parts else np.zeros(0))
        return np.stack(rows)

    def bins(self, scores: Vector) -> NDArray[np.int64]:
        """Return the fixed bins of scores, shape (n_scores, m); low is strange."""
        rows = [ranks.log_bins(scores[0])]
        if self.distance is not None:
            rows.append(self.distance.bins(scores[1]))
        return np.stack(rows)

    def _encoded(self, X: Any) -> Vector:
        encoder: Any = self.encoder
        return encoder.transform(X, quiet=True)  # an unknown level may be what is strange


def _n_rows(X: Any) -> int:
    return int(np.shape(X)[0])
