r"""The weighted vote of calibration items, from a block of similarities.

:math:`\hat q_t[k] = \sum_i w_i s(t,i)^g 1(y_i = k) / \sum_i w_i s(t,i)^g` over the items that the
rule lets vote: all, the nearest few, or those with a similarity of at least a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import stored
from hetcal._stored.checks import check_codes, check_weight
from hetcal._stored.fields import MOST_CLASSES, integers, numbers, optional, whole
from hetcal._typing import Matrix


@stored(
    {
        "codes": integers(None, low=0, high=MOST_CLASSES),
        "n_classes": whole(2, MOST_CLASSES),
        "weight": optional(numbers(None, low=0.0)),
    }
)
@dataclass(frozen=True)
class Voters:
    """The calibration items as voters: class codes, number of classes, weights."""

    codes: NDArray[np.int64]
    n_classes: int
    weight: Matrix | None = None

    def take(self, rows: NDArray[np.int64]) -> Voters:
        """Return some of the voters."""
        weight = self.weight
        return Voters(self.codes[rows], self.n_classes, weight if weight is None else weight[rows])

    def _check_restored(self) -> None:
        check_codes(self, self.codes, len(self.codes), self.n_classes)
        check_weight(self, self.weight, len(self.codes))


@dataclass(frozen=True)
class VoteRule:
    """Who votes, and with what weight.

    Parameters
    ----------
    n_neighbors : int or None
        Only so many of the most similar items vote; all when None.
    uniform : bool
        Every voter counts the same instead of by its similarity.
    power : float
        The similarity is raised to this power.
    threshold : ndarray of shape (m,) or None
        Per row, items of a smaller similarity do not vote; if none is left, the most similar does.
    """

    n_neighbors: int | None = None
    uniform: bool = False
    power: float = 1.0
    threshold: Matrix | None = None

    @property
    def everyone(self) -> bool:
        """Whether all items vote with their plain similarity."""
        return (
            self.n_neighbors is None
            and not self.uniform
            and self.power == 1.0
            and self.threshold is None
        )

    def rows(self, rows: slice | NDArray[np.intp]) -> VoteRule:
        """Return the rule for some of the rows."""
        if self.threshold is None:
            return self
        return replace(self, threshold=self.threshold[rows])


@dataclass(frozen=True)
class Ballot:
    """Outcome of a vote for m rows.

    Attributes
    ----------
    mass : ndarray of shape (m, K)
        Weight of the votes per class; for a power other than 1 up to a factor per row.
    support : ndarray of shape (m,)
        Sum of the plain similarities of those who voted.
    squared : ndarray of shape (m,) or None
        Sum of squared voting weights, where it was computed.
    """

    mass: Matrix
    support: Matrix
    squared: Matrix | None = None

    @property
    def effective_size(self) -> Matrix:
        """Kish's effective number of voters, (sum w)^2 / sum w^2; 0 where nobody voted."""
        if self.squared is None:
            raise ValueError("This vote did not keep the sum of squared weights.")
        total = self.mass.sum(axis=1)
        return np.divide(total**2, self.squared, out=np.zeros_like(total), where=self.squared > 0)

    @staticmethod
    def stack(ballots: list[Ballot]) -> Ballot:
        """Join the outcomes of consecutive blocks of rows."""
        if len(ballots) == 1:
            return ballots[0]
        squares = [ballot.squared for ballot in ballots if ballot.squared is not None]
        return Ballot(
            np.concatenate([ballot.mass for ballot in ballots]),
            np.concatenate([ballot.support for ballot in ballots]),
            np.concatenate(squares) if len(squares) == len(ballots) else None,
        )


@dataclass(frozen=True)
class Votes:
    """The heaviest votes on each row, all of shape (m, k) and filled with -1 and 0.

    ``share`` is a vote's part of the whole vote on its row.
    """

    index: NDArray[np.int64]
    similarity: Matrix
    share: Matrix

    @staticmethod
    def stack(parts: list[Votes]) -> Votes:
        """Join the lists of consecutive blocks of rows."""
        return Votes(
            np.concatenate([part.index for part in parts]),
            np.concatenate([part.similarity for part in parts]),
            np.concatenate([part.share for part in parts]),
        )


def vote_with_matrix(S: Matrix, voters: Voters, rule: VoteRule) -> Ballot:
    """Hold the vote for a block of similarities (m, n).

    Nobody votes with a similarity of zero; ``-inf`` marks an item that may not vote on this row.
    """
    similarity, weights = _matrix_weights(S, voters, rule)
    support = similarity.sum(axis=1) if voters.weight is None else similarity @ voters.weight
    return Ballot(weights @ _one_hot(voters), support, (weights**2).sum(axis=1))


def heaviest_votes(S: Matrix, voters: Voters, rule: VoteRule, top: int) -> Votes:
    """List the heaviest votes that :func:`vote_with_matrix` counts, the heaviest first."""
    similarity, weights = _matrix_weights(S, voters, rule)
    order = np.argsort(-weights, axis=1, kind="stable")[:, :top]
    share = _share(np.take_along_axis(weights, order, axis=1), weights.sum(axis=1))
    index = np.where(share > 0, order, -1)
    return Votes(index, np.take_along_axis(similarity, order, axis=1) * (share > 0), share)


def vote_with_neighbours(
    index: NDArray[np.int64], similarity: Matrix, voters: Voters, rule: VoteRule
) -> Ballot:
    """Hold the vote among listed neighbours (m, k); index -1 marks an empty place."""
    similarity, weights = _listed_weights(index, similarity, voters, rule)
    m, K = index.shape[0], voters.n_classes
    cell = voters.codes[index] + K * np.arange(m)[:, None]
    mass = np.bincount(cell.ravel(), weights=weights.ravel(), minlength=m * K).astype(float)
    if voters.weight is not None:
        similarity = similarity * voters.weight[index]
    return Ballot(mass.reshape(m, K), similarity.sum(axis=1), (weights**2).sum(axis=1))


def heaviest_neighbours(
    index: NDArray[np.int64],
    similarity: Matrix,
    voters: Voters,
    rule: VoteRule,
    top: int,
    total: Matrix | None = None,
) -> Votes:
    """List the heaviest votes among neighbours (m, k), the heaviest first.

    ``total`` is the weight of the whole vote on each row where not only the listed ones voted.
    """
    similarity, weights = _listed_weights(index, similarity, voters, rule)
    share = _share(weights, weights.sum(axis=1) if total is None else total)
    order = np.argsort(-share, axis=1, kind="stable")[:, :top]
    index = np.take_along_axis(index, order, axis=1)
    similarity = np.take_along_axis(similarity, order, axis=1)
    share = np.take_along_axis(share, order, axis=1)
    return Votes(np.where(share > 0, index, -1), similarity * (share > 0), share)


def _matrix_weights(S: Matrix, voters: Voters, rule: VoteRule) -> tuple[Matrix, Matrix]:
    """Return the similarities of those who vote, else 0, and the weights of their votes."""
    if voters.weight is not None:
        # An item of weight zero is not there: it takes no neighbour's place.
        S = np.where(voters.weight > 0, S, -np.inf)
    voting = S > 0
    if rule.n_neighbors is not None and rule.n_neighbors < S.shape[1]:
        voting &= _nearest(S, rule.n_neighbors)
    if rule.threshold is not None:
        voting &= _at_least(np.where(voting, S, -np.inf), rule.threshold)
    similarity = np.where(voting, S, 0.0)
    weights = _voting_weights(similarity, rule)
    return similarity, weights if voters.weight is None else weights * voters.weight


def _listed_weights(
    index: NDArray[np.int64], similarity: Matrix, voters: Voters, rule: VoteRule
) -> tuple[Matrix, Matrix]:
    voting = (index >= 0) & (similarity > 0)
    if rule.threshold is not None:
        voting &= _at_least(np.where(voting, similarity, -np.inf), rule.threshold)
    similarity = np.where(voting, similarity, 0.0)
    weights = _voting_weights(similarity, rule)
    return similarity, weights if voters.weight is None else weights * voters.weight[index]


def _voting_weights(similarity: Matrix, rule: VoteRule) -> Matrix:
    if rule.uniform:
        return (similarity > 0).astype(np.float64)
    if rule.power == 1.0:
        return similarity
    # Relative to the most similar voter: a large power neither overflows nor leaves nothing.
    largest = similarity.max(axis=1, keepdims=True)
    return (similarity / np.where(largest > 0, largest, 1.0)) ** rule.power


def _one_hot(voters: Voters) -> Matrix:
    labels = np.zeros((voters.codes.shape[0], voters.n_classes))
    labels[np.arange(voters.codes.shape[0]), voters.codes] = 1.0
    return labels


def _share(weights: Matrix, total: Matrix) -> Matrix:
    return np.divide(weights, total[:, None], out=np.zeros_like(weights), where=total[:, None] > 0)


def _nearest(S: Matrix, k: int) -> NDArray[np.bool_]:
    """Mark the k most similar items of each row; among equals the first."""
    order = np.argsort(-S, axis=1, kind="stable")[:, :k]
    nearest = np.zeros(S.shape, dtype=bool)
    np.put_along_axis(nearest, order, True, axis=1)
    return nearest


def _at_least(S: Matrix, threshold: Matrix) -> NDArray[np.bool_]:
    passing = threshold[:, None] <= S
    nobody = ~passing.any(axis=1)
    passing[nobody, S[nobody].argmax(axis=1)] = True
    return passing
