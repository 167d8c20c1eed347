"""One similarity on the features and one on the probabilities, added with a learned weight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hetcal._stored import expect, stored
from hetcal._stored.fields import MOST_CLASSES, instance, number, whole
from hetcal._typing import Rows
from hetcal.data import Folds
from hetcal.kernels.simplex import normalize_rows
from hetcal.kernels.votes import Ballot, Voters, VoteRule, vote_with_matrix
from hetcal.metrics.scores import brier_losses
from hetcal.similarity.base import BaseSimilarity, Matrix

_CANDIDATES = np.linspace(0.0, 1.0, 11)
# Some items, those that vote on them, and the similarities of features and of probabilities.
_Part = tuple[Rows, Rows, Matrix, Matrix]


def _candidates(value: Any) -> bool:
    good = isinstance(value, dict) and len(value) <= 1000
    return good and all(map(number(), [*value, *value.values()]))


@stored(
    {
        "on_features": instance(BaseSimilarity),
        "on_proba": instance(BaseSimilarity),
        "on_features_": instance(BaseSimilarity),
        "on_proba_": instance(BaseSimilarity),
        "weight_": number(0, 1),
        "scores_": _candidates,
        "n_proba_": whole(1, MOST_CLASSES),
    }
)
class CombinedSimilarity(BaseSimilarity):
    r"""The weighted sum :math:`s = a\, s_x + (1 - a)\, s_p`.

    Parameters
    ----------
    on_features, on_proba : BaseSimilarity
        The similarity of the features and that of the probabilities.
    weight : float or "auto", default="auto"
        The share a of the features; ``"auto"`` takes, from eleven candidates, the one whose
        out-of-sample vote on the calibration items has the smallest Brier score. Where the items
        have groups, no item of the same group votes, and both parts are learned without it.

    Attributes
    ----------
    weight_ : float
        The share a in use.
    scores_ : dict of float to float
        Out-of-sample Brier score of every candidate (empty when ``weight`` was given).
    """

    uses_groups = True

    def __init__(
        self,
        on_features: BaseSimilarity,
        on_proba: BaseSimilarity,
        *,
        weight: float | str = "auto",
    ):
        self.on_features = on_features
        self.on_proba = on_proba
        self.weight = weight

    def fit(
        self,
        Z: Any,
        codes: NDArray[np.int64],
        *,
        n_proba: int = 0,
        sample_weight: Matrix | None = None,
        groups: Rows | None = None,
    ) -> Self:
        """Fit both parts and choose their weight."""
        if self.weight != "auto" and (isinstance(self.weight, str) or not 0 <= self.weight <= 1):
            raise ValueError(
                f"CombinedSimilarity: weight must be 'auto' or in [0, 1]; got {self.weight!r}."
            )
        if not 0 < n_proba < Z.shape[1]:
            raise ValueError(
                "CombinedSimilarity needs both features and probabilities. Pass X with at least "
                "one feature, and an augment= that adds the probabilities."
            )
        self.n_proba_ = n_proba
        self.on_features_ = clone(self.on_features)
        self.on_proba_ = clone(self.on_proba)
        features, proba = self._parts(Z)
        self.on_features_.fit(features, codes, sample_weight=sample_weight)
        self.on_proba_.fit(proba, codes, n_proba=n_proba, sample_weight=sample_weight)
        self.scores_: dict[float, float] = {}
        if self.weight == "auto":
            voters = Voters(codes, int(codes.max()) + 1, sample_weight)
            heard = slice(None) if sample_weight is None else np.asarray(sample_weight) > 0
            together = groups is not None and np.ptp(groups[heard]) > 0
            parts = self._left_out_groups(Z, voters, groups) if together else self._left_out_one()
            self.scores_ = self._scores(parts, voters)
            self.weight_ = min(self.scores_, key=self.scores_.__getitem__)
        else:
            self.weight_ = float(self.weight)
        return self

    @property
    def n_items_(self) -> int:
        """Number of calibration items."""
        return self.on_features_.n_items_

    @property
    def n_columns_(self) -> int:
        """Number of columns that are compared."""
        return self.on_features_.n_columns_ + self.n_proba_

    def _check_restored(self) -> None:
        parts = (self.on_features_, self.on_proba_)
        expect(parts[0].n_items_ == parts[1].n_items_, self, "has parts of other items")
        expect(parts[1].n_columns_ == self.n_proba_, self, "compares other probabilities")

    def pairwise(self, Z: Any) -> Matrix:
        """Return the weighted sum of both similarities."""
        features, proba = self._parts(Z)
        return self._blend(self.on_features_.pairwise(features), self.on_proba_.pairwise(proba))

    def unbiased_pairwise(self, Z: Any) -> Matrix:
        """Return the weighted sum of both label-free similarities."""
        features, proba = self._parts(Z)
        return self._blend(
            self.on_features_.unbiased_pairwise(features), self.on_proba_.unbiased_pairwise(proba)
        )

    def unbiased_vote(self, Z: Any, voters: Voters, rule: VoteRule) -> Ballot:
        """Vote with weights that do not depend on the voters' own labels."""
        ballots = [
            vote_with_matrix(self.unbiased_pairwise(Z[rows]), voters, rule.rows(rows))
            for rows in self._chunks(Z.shape[0])
        ]
        return Ballot.stack(ballots)

    def out_of_sample_pairwise(self, rows: slice) -> Matrix:
        """Return the weighted sum of both out-of-sample similarities."""
        return self._blend(
            self.on_features_.out_of_sample_pairwise(rows),
            self.on_proba_.out_of_sample_pairwise(rows),
        )

    def extend(self, Z: Any) -> None:
        """Add calibration items to both parts."""
        features, proba = self._parts(Z)
        self.on_features_, self.on_proba_ = copy(self.on_features_), copy(self.on_proba_)
        self.on_features_.extend(features)
        self.on_proba_.extend(proba)

    def retain(self, rows: Rows) -> None:
        """Keep only these calibration items in both parts."""
        self.on_features_, self.on_proba_ = copy(self.on_features_), copy(self.on_proba_)
        self.on_features_.retain(rows)
        self.on_proba_.retain(rows)

    def _parts(self, Z: Any) -> tuple[Any, Any]:
        return Z[:, : -self.n_proba_], Z[:, -self.n_proba_ :]

    def _blend(self, features: Matrix, proba: Matrix, weight: float | None = None) -> Matrix:
        a = self.weight_ if weight is None else weight
        with np.errstate(invalid="ignore"):
            blended = a * features + (1 - a) * proba
        # 0 * -inf is not a number: whoever may not vote in one part may not vote at all.
        return np.where(np.isneginf(features) | np.isneginf(proba), -np.inf, blended)

    def _left_out_one(self) -> Iterator[_Part]:
        """Yield the similarities of the items to all others."""
        everyone = np.arange(self.n_items_)
        for rows in self._chunks(self.n_items_):
            features = self.on_features_.out_of_sample_pairwise(rows)
            yield everyone[rows], everyone, features, self.on_proba_.out_of_sample_pairwise(rows)

    def _left_out_groups(self, Z: Any, voters: Voters, groups: Rows | None) -> Iterator[_Part]:
        """Yield the similarities of the items to those of other groups, learned from these."""
        for kept, left_out in Folds.make(self.n_items_, seed=0, groups=groups):
            if voters.weight is not None:
                kept = kept[voters.weight[kept] > 0]
            if not len(kept):  # nobody to vote on these
                continue
            some, fixed = voters.take(kept), clone(self).set_params(weight=0.5)
            fixed.fit(Z[kept], some.codes, n_proba=self.n_proba_, sample_weight=some.weight)
            for chunk in fixed._chunks(len(left_out)):
                rows = left_out[chunk]
                features, proba = self._parts(Z[rows])
                yield (
                    rows,
                    kept,
                    fixed.on_features_.pairwise(features),
                    fixed.on_proba_.pairwise(proba),
                )

    def _scores(self, parts: Iterable[_Part], voters: Voters) -> dict[float, float]:
        """Return the Brier score of every candidate."""
        codes = voters.codes
        weight = np.ones(codes.shape[0]) if voters.weight is None else voters.weight
        total = dict.fromkeys(_CANDIDATES.tolist(), 0.0)
        for rows, kept, features, proba in parts:
            some = voters.take(kept)
            for a in total:
                ballot = vote_with_matrix(self._blend(features, proba, a), some, VoteRule())
                Q = normalize_rows(ballot.mass)
                total[a] += float(weight[rows] @ brier_losses(Q, codes[rows]))
        return {a: score / float(weight.sum()) for a, score in total.items()}
