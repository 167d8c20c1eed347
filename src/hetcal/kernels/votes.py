"""The weighted vote of calibration items, from a block of similarities.

:math:`\\hat q_t[k] = \\sum_i w_i s(t,i)^g 1(y_i = k) / \\sum_i w_i s(t,i)^g` over the items that the rule
lets vote: all, the nearest few, or those with a similarity of at least a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Voters:
    """The calibration items as voters: class codes, number of classes, weights, groups."""

    codes: NDArray[np.int64]
    n_classes: int
    weight: Matrix | None = None

    @property
    def onehot(self) -> Matrix:
        """Weighted one-hot labels (n, K)."""
        labels = np.zeros((self.codes.shape[0], self.n_classes))
        labels[np.arange(self.codes.shape[0]), self.codes] = (
            1.0 if self.weight is None else self.weight
        )
        return labels


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

    def rows(self, rows: slice) -> VoteRule:
        """Return the rule for a block of rows."""
        if self.threshold is None:
            return self
        return replace(self, threshold=self.threshold[rows])


@dataclass(frozen=True)
class Ballot:
    """Outcome of a vote for m rows.

    Attributes
    ----------
    mass : ndarray of shape (m, K)
        Weight of the votes per class.
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


def vote_with_matrix(S: Matrix, voters: Voters, rule: VoteRule) -> Ballot:
    """Hold the vote for a block of similarities (m, n).

    A similarity of ``-inf`` marks an item that may not vote on this row at all.
    """
    voting = np.isfinite(S)
    if rule.n_neighbors is not None and rule.n_neighbors < S.shape[1]:
        voting &= _nearest(S, rule.n_neighbors)
    if rule.threshold is not None:
        voting &= _at_least(S, rule.threshold)
    similarity = np.where(voting, S, 0.0)
    return _count(_voting_weights(similarity, voting, rule), similarity, voters)


def vote_with_neighbours(
    index: NDArray[np.int64], similarity: Matrix, voters: Voters, rule: VoteRule
) -> Ballot:
    """Hold the vote among listed neighbours (m, k); index -1 marks an empty place."""
    voting = index >= 0
    weights = _voting_weights(np.where(voting, similarity, 0.0), voting, rule)
    if voters.weight is not None:
        own = voters.weight[index]
        weights, similarity = weights * own, similarity * own
    m, K = index.shape[0], voters.n_classes
    cell = voters.codes[index] + K * np.arange(m)[:, None]
    mass = np.bincount(cell.ravel(), weights=weights.ravel(), minlength=m * K).reshape(m, K)
    support = np.where(voting, similarity, 0.0).sum(axis=1)
    return Ballot(mass, support, (weights**2).sum(axis=1))


def _voting_weights(similarity: Matrix, voting: NDArray[np.bool_], rule: VoteRule) -> Matrix:
    if rule.uniform:
        return voting.astype(np.float64)
    return similarity if rule.power == 1.0 else similarity**rule.power


def _count(weights: Matrix, similarities: Matrix, voters: Voters) -> Ballot:
    squared = weights**2
    if voters.weight is not None:
        squared = squared * voters.weight**2
        similarities = similarities * voters.weight
    return Ballot(weights @ voters.onehot, similarities.sum(axis=1), squared.sum(axis=1))


def _nearest(S: Matrix, k: int) -> NDArray[np.bool_]:
    """Mark the k most similar items of each row; among equals the later ones."""
    order = np.argsort(S, axis=1, kind="stable")[:, -k:]
    nearest = np.zeros(S.shape, dtype=bool)
    np.put_along_axis(nearest, order, True, axis=1)
    return nearest


def _at_least(S: Matrix, threshold: Matrix) -> NDArray[np.bool_]:
    passing = threshold[:, None] <= S
    nobody = ~passing.any(axis=1)
    passing[nobody, S[nobody].argmax(axis=1)] = True
    return passing
