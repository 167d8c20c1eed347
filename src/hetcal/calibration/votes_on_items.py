"""The vote of calibration items on new items, and what is read from it.

New items pass through in blocks of rows, which bounds the memory beyond input and output.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import SupportWarning, levels_to_caller
from hetcal._typing import Matrix, Rows
from hetcal.calibration.augment import AugmentedSpace
from hetcal.data import Scores
from hetcal.kernels.intervals import wilson_interval
from hetcal.kernels.votes import Ballot, Voters, VoteRule, Votes

_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True)
class ItemsToVoteOn:
    """New items, with encoded features, and the rule by which calibration items vote on them."""

    space: AugmentedSpace
    features: Any
    scores: Scores
    rule: VoteRule

    @property
    def points(self) -> Any:
        """The items in the space of comparison, all at once."""
        return self.space.join(self.features, self.scores)

    def vote(self, hold: Callable[[Any, Voters, VoteRule], Ballot], voters: Voters) -> Ballot:
        """Return the votes, which ``hold`` holds for a block of rows."""
        return Ballot.stack([hold(Z, voters, rule) for _, Z, rule in self._blocks()])

    def vote_by_some_trees(
        self, hold: Any, voters: Voters, n_trees: Any, rng: np.random.Generator
    ) -> Ballot:
        """Return the votes, each by so many trees."""
        counts = np.asarray(n_trees)
        parts = [hold(Z, voters, rule, counts[rows], rng) for rows, Z, rule in self._blocks()]
        return Ballot.stack(parts)

    def _blocks(self) -> Iterator[tuple[slice, Any, VoteRule]]:
        n_rows = self.scores.proba.shape[0]
        for start in range(0, n_rows, _BLOCK_ROWS):
            rows = slice(start, min(start + _BLOCK_ROWS, n_rows))
            Z = self.space.join(self.features[rows], self.scores.take(rows))
            yield rows, Z, self.rule.rows(rows)


def vote_shares(ballot: Ballot, P: Matrix) -> Matrix:
    """Return each class's share of the votes; items without votes keep their P, with a warning."""
    total = ballot.mass.sum(axis=1)
    alone = ~(total > 0)
    if not alone.any():
        return ballot.mass / total[:, None]
    warnings.warn(
        f"{int(alone.sum())} of {total.shape[0]} samples have no calibration support; "
        "their uncalibrated probabilities are returned.",
        SupportWarning,
        stacklevel=levels_to_caller(),
    )
    Q = P.copy()
    Q[~alone] = ballot.mass[~alone] / total[~alone, None]
    return Q


def vote_interval(ballot: Ballot, confidence: float) -> tuple[Matrix, Matrix]:
    """Return Wilson's interval around each class's share of the votes; [0, 1] without votes."""
    total = ballot.mass.sum(axis=1, keepdims=True)
    share = np.divide(ballot.mass, total, out=np.zeros_like(ballot.mass), where=total > 0)
    return wilson_interval(share, ballot.effective_size[:, None], confidence)


def voters_table(votes: Votes, codes: Rows, classes: NDArray) -> pd.DataFrame:
    """Return one row per vote, by item and rank."""
    item, place = np.nonzero(votes.index >= 0)
    voter = votes.index[item, place]
    return pd.DataFrame(
        {
            "item": item,
            "rank": place + 1,
            "calibration_item": voter,
            "similarity": votes.similarity[item, place],
            "weight": votes.share[item, place],
            "label": classes[codes[voter]],
        }
    )
