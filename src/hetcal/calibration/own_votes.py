"""Votes of the calibration items on each other, each without a say in its own case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix, Rows
from hetcal.calibration.out_of_sample_support import (
    Reference,
    support_of_new_groups,
    without_own,
)
from hetcal.data import Folds, out_of_sample
from hetcal.kernels.votes import Ballot, Voters, VoteRule


@dataclass(frozen=True)
class OwnVotes:
    """Votes by the fitted similarity, of which the item's own label is no part.

    Attributes
    ----------
    similarity : BaseSimilarity
    voters : Voters
        Labels and weights of the calibration items.
    rule : VoteRule
        Who votes on each of them.
    """

    similarity: Any
    voters: Voters
    rule: VoteRule

    def ballot(self) -> Ballot:
        """Return the votes on each item."""
        return self.similarity.out_of_sample_vote(self.voters, self.rule)

    def support(self) -> Reference:
        """Return the support that each item would have if it were new."""
        support = self.ballot().support
        if self.rule.everyone:
            support = without_own(support, self.voters.weight)
        return Reference(support, self._n_trees())

    def _n_trees(self) -> NDArray[np.int64] | None:
        """Return over how many trees each item's support is counted, None for all."""
        in_bag = getattr(getattr(self.similarity, "forest_", None), "in_bag", None)
        one_sided = getattr(self.similarity, "voters", "all") == "all" or self.rule.everyone
        return None if in_bag is None or not one_sided else (in_bag == 0).sum(axis=0)


@dataclass(frozen=True)
class GroupedVotes:
    """Votes by similarities that were learned without the item's group.

    Attributes
    ----------
    learn : callable
        From a part of ``Z``, its voters and their groups to a fitted similarity.
    voters, rule
        As in :class:`OwnVotes`.
    Z : array or sparse matrix of shape (n, d)
        The items in the space in which a similarity is learned.
    groups : ndarray of shape (n,)
    """

    learn: Callable[[Any, Voters, Rows], Any]
    voters: Voters
    rule: VoteRule
    Z: Any
    groups: Rows

    def ballot(self) -> Ballot:
        """Return the votes on each item."""
        n = self.groups.shape[0]
        mass, support, _ = self._without(Folds.make(n, seed=0, groups=self.groups))
        return Ballot(mass, support)

    def support(self) -> Reference:
        """Return the support that each item would have if its whole group were new."""
        if self.Z is None:
            raise ValueError(
                "out_of_sample_support is not available: the calibrator was fitted with "
                "groups= and comes from a file that was written without it. Fit it anew."
            )
        return Reference(support_of_new_groups(lambda folds: self._without(folds)[1:], self.groups))

    def _without(self, folds: Folds) -> tuple[Matrix, Matrix, Matrix]:
        """Return votes, support, and which part of all weight took part in each vote."""
        n, weight = self.groups.shape[0], self.voters.weight
        counts = np.ones(n) if weight is None else weight

        def learned(kept: Rows) -> Callable[[Rows], Matrix]:
            voters = self.voters.take(kept)
            similarity = self.learn(self.Z[kept], voters, self.groups[kept])
            share = counts[kept].sum() / counts.sum()

            def voted(left_out: Rows) -> Matrix:
                ballot = similarity.vote(self.Z[left_out], voters, self.rule.rows(left_out))
                shares = np.full(left_out.shape[0], share)
                return np.column_stack([ballot.mass, ballot.support, shares])

            return voted

        votes = out_of_sample(learned, folds, n)
        return votes[:, :-2], votes[:, -2], votes[:, -1]
