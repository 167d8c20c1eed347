"""The scores of new items: support, and distance where that was fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hetcal._stored import expect, stored
from hetcal._stored.fields import instance, optional
from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation import FeatureEncoder
from hetcal.monitor.batch import Batch
from hetcal.monitor.bins import log_bins
from hetcal.monitor.distance import SCORES

_BLOCK_ROWS = 1 << 14


@stored(
    {
        "encoder": optional(instance(FeatureEncoder)),
        "distance": optional(instance(tuple(SCORES.values()))),
    },
    inline=True,
)
@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores new items like the reference.

    Attributes
    ----------
    encoder : FeatureEncoder or None
        For the distance score.
    distance : IsolationScore, NearestScore or None
    """

    encoder: FeatureEncoder | None = None
    distance: Any = None

    @classmethod
    def fit(cls, kind: str, X: Any, seed: int) -> tuple[Scorer, Vector, Rows | None]:
        """Fit a distance score on the calibration items.

        Returns
        -------
        Scorer
        scores : ndarray of shape (n,)
            The out-of-sample scores of these items; NaN for those that have none.
        n_trees : ndarray of int of shape (n,) or None
            See :class:`hetcal.monitor.reference.Reference`.
        """
        encoder = FeatureEncoder(missing="impute").fit(X)
        F = encoder.transform(X, quiet=True)
        distance = SCORES[kind]().fit(F, seed)
        return cls(encoder, distance), *distance.out_of_sample(F)

    @classmethod
    def fit_apart(cls, kind: str, X: Any) -> Scorer:
        """Fit a distance score on items that are no reference."""
        encoder = FeatureEncoder(missing="impute").fit(X)
        return cls(encoder, SCORES[kind]().fit_all(encoder.transform(X, quiet=True)))

    @property
    def names(self) -> list[str]:
        """The names of the scores."""
        return ["support"] if self.distance is None else ["support", "distance"]

    def scores(
        self,
        calibrator: Any,
        batch: Batch,
        n_trees: list[Any],
        rng: np.random.Generator,
    ) -> Matrix:
        """Return the scores of new items, shape (n_scores, m).

        ``n_trees`` holds, per score, the numbers of trees of the reference; each new item gets one
        of them at random.
        """
        draws = [None if known is None else rng.choice(known, batch.n_items) for known in n_trees]
        rows = [calibrator.support_items(batch.items, draws[0], rng)]
        if self.distance is not None:
            rows.append(self.distances(batch.X, draws[1], rng))
        return np.stack(rows)

    def distances(self, X: Any, n_trees: Rows | None, rng: np.random.Generator) -> Vector:
        """Return the distance scores of new items."""
        encoder: Any = self.encoder
        F = encoder.transform(X, quiet=True)  # an unknown level may be what is atypical
        blocks = [slice(a, a + _BLOCK_ROWS) for a in range(0, len(F), _BLOCK_ROWS)]
        counts = [None if n_trees is None else n_trees[block] for block in blocks]
        parts = [
            self.distance.score(F[block], n, rng) for block, n in zip(blocks, counts, strict=True)
        ]
        return np.concatenate(parts)

    def bins(self, scores: Matrix) -> Rows:
        """Return the fixed bins of scores, shape (n_scores, m); low is atypical."""
        rows = [log_bins(scores[0])]
        if self.distance is not None:
            rows.append(self.distance.bins(scores[1]))
        return np.stack(rows)

    def _check_restored(self) -> None:
        if self.distance is not None:
            expect(self.encoder is not None, self, "has no encoder")
            width = len(self.encoder.feature_names_out_)  # type: ignore[union-attr]
            expect(width == self.distance.n_columns, self, "measures other columns")
