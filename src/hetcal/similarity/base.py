r"""What a similarity must offer to a calibrator, and the plain way to vote with it.

A similarity is fitted on the calibration items in the augmented space, :math:`z_i = [x_i, p_i]`,
and then gives :math:`s(t, i) \ge 0` for new items. A calibrator needs votes, not the matrix of all
pairs: :class:`BaseSimilarity` computes them from :meth:`BaseSimilarity.pairwise` in chunks of rows,
and similarities with a faster route (forests) override the voting methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from hetcal._threads import ThreadSafe
from hetcal._typing import Matrix, Rows
from hetcal.kernels.votes import (
    Ballot,
    Voters,
    VoteRule,
    Votes,
    heaviest_votes,
    vote_with_matrix,
)

# Rows are handled so many at a time that a chunk of similarities stays within this many numbers.
_CHUNK_NUMBERS = 2**23


@dataclass(frozen=True)
class Neighbours:
    """The most similar calibration items of each row: ``index`` and ``similarity`` (m, k).

    Rows with fewer than k similar items are filled with index -1 and similarity 0.
    """

    index: NDArray[np.int64]
    similarity: Matrix


def without_self(S: Matrix, rows: slice) -> Matrix:
    """Mark the similarity of each calibration item to itself as no vote (-inf), in place."""
    own = np.arange(rows.start, rows.stop)
    S[own - rows.start, own] = -np.inf
    return S


class BaseSimilarity(ThreadSafe, BaseEstimator, ABC):
    """Similarity between new items and the calibration items.

    Attributes
    ----------
    n_items_ : int
        Number of calibration items.
    """

    # Whether the method can use missing values and sparse matrices as they are.
    accepts_missing = False
    accepts_sparse = False
    # Whether fit takes groups=, because it predicts calibration items to choose something.
    uses_groups = False

    @abstractmethod
    def fit(
        self,
        Z: Any,
        codes: NDArray[np.int64],
        *,
        n_proba: int = 0,
        sample_weight: Matrix | None = None,
    ) -> Self:
        """Learn the similarity from calibration items.

        Parameters
        ----------
        Z : array of shape (n, d)
            Items in the augmented space.
        codes : ndarray of shape (n,)
            Class codes, for similarities that learn from labels.
        n_proba : int, default=0
            How many of the last columns of ``Z`` hold the classifier's probabilities.
        sample_weight : ndarray of shape (n,), optional
            Weights of the items, for similarities that learn from labels.
        """

    @abstractmethod
    def pairwise(self, Z: Any) -> Matrix:
        """Return s(t, i) for the rows of ``Z`` and all calibration items; shape (m, n)."""

    @abstractmethod
    def out_of_sample_pairwise(self, rows: slice) -> Matrix:
        """Return the similarities of some calibration items to all, -inf to themselves.

        Nothing in row i may depend on the label of item i.
        """

    @abstractmethod
    def extend(self, Z: Any) -> None:
        """Add calibration items without learning the similarity anew.

        Assign new arrays; those of now may be in use by a prediction in another thread.
        """

    def retain(self, rows: Rows) -> None:
        """Keep only these calibration items, without learning the similarity anew."""
        raise NotImplementedError(
            f"{type(self).__name__} cannot forget calibration items: it has no retain(rows). Add "
            "it, or extend without window= and half_life=."
        )

    def vote(self, Z: Any, voters: Voters, rule: VoteRule) -> Ballot:
        """Let the calibration items vote on the class of each row of ``Z``."""
        ballots = [
            vote_with_matrix(self.pairwise(Z[rows]), voters, rule.rows(rows))
            for rows in self._chunks(Z.shape[0])
        ]
        return Ballot.stack(ballots)

    def out_of_sample_vote(self, voters: Voters, rule: VoteRule) -> Ballot:
        """Let the calibration items vote on each other, each without a voice in its own case."""
        ballots = [
            vote_with_matrix(self.out_of_sample_pairwise(rows), voters, rule.rows(rows))
            for rows in self._chunks(self.n_items_)
        ]
        return Ballot.stack(ballots)

    def counted_vote(self, Z: Any, voters: Voters, rule: VoteRule) -> Ballot:
        """Vote, and keep the sum of squared weights that the effective sample size needs."""
        return self.vote(Z, voters, rule)

    def unbiased_pairwise(self, Z: Any) -> Matrix:
        """Return similarities that do not depend on the calibration items' own labels."""
        return self.pairwise(Z)

    def unbiased_vote(self, Z: Any, voters: Voters, rule: VoteRule) -> Ballot:
        """Vote with weights that do not depend on the voters' own labels."""
        return self.vote(Z, voters, rule)

    def heaviest(self, Z: Any, voters: Voters, rule: VoteRule, top: int) -> Votes:
        """List the heaviest votes that :meth:`vote` counts on each row, the heaviest first."""
        parts = [
            heaviest_votes(self.pairwise(Z[rows]), voters, rule.rows(rows), top)
            for rows in self._chunks(Z.shape[0])
        ]
        return Votes.stack(parts)

    def neighbours(self, Z: Any, n_neighbors: int) -> Neighbours:
        """Return the most similar calibration items of each row, the most similar first."""
        k = min(n_neighbors, self.n_items_)
        index, similarity = [], []
        for rows in self._chunks(Z.shape[0]):
            S = self.pairwise(Z[rows])
            order = np.argsort(-S, axis=1, kind="stable")[:, :k]
            index.append(order)
            similarity.append(np.take_along_axis(S, order, axis=1))
        found, values = np.concatenate(index), np.concatenate(similarity)
        return Neighbours(np.where(values > 0, found, -1), values)

    def _chunks(self, n_rows: int) -> Iterator[slice]:
        step = max(1, _CHUNK_NUMBERS // max(1, self.n_items_))
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows))
