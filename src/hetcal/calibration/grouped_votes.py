"""Votes on the calibration items themselves, by similarities that have not seen them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal.data.folds import Folds
from hetcal.kernels.votes import Ballot, Voters, VoteRule


class GroupedVote(NamedTuple):
    """The votes, and which part of all voting weight took part in each."""

    ballot: Ballot
    share: Matrix


def vote_across_groups(
    Z: Any,
    voters: Voters,
    folds: Folds,
    rule: VoteRule,
    learn: Callable[[Any, Voters], Any],
) -> GroupedVote:
    """Learn the similarity without each fold of groups and vote on the items left out.

    Parameters
    ----------
    Z : array or sparse matrix of shape (n, d)
        The space in which ``learn`` learns a similarity.
    voters : Voters
        Labels and weights of the n items.
    folds : Folds
        Items of one group are in one fold.
    rule : VoteRule
        Who votes on each of the n items.
    learn : callable
        From a part of Z and its voters to a fitted similarity.
    """
    n = voters.codes.shape[0]
    weight = np.ones(n) if voters.weight is None else voters.weight
    mass, support, share = np.zeros((n, voters.n_classes)), np.zeros(n), np.ones(n)
    for kept, left_out in folds:
        part = Voters(
            voters.codes[kept],
            voters.n_classes,
            None if voters.weight is None else weight[kept],
        )
        ballot = learn(Z[kept], part).vote(Z[left_out], part, rule.rows(left_out))
        mass[left_out], support[left_out] = ballot.mass, ballot.support
        share[left_out] = weight[kept].sum() / weight.sum()
    return GroupedVote(Ballot(mass, support), share)


def n_out_of_bag_trees(similarity: Any, rule: VoteRule) -> NDArray[np.int64] | None:
    """Return over how many trees each calibration item's support is counted, None for all."""
    in_bag = getattr(getattr(similarity, "forest_", None), "in_bag", None)
    one_sided = getattr(similarity, "voters", "all") == "all" or rule.everyone
    if in_bag is None or not one_sided:
        return None
    return (in_bag == 0).sum(axis=0)
